"""Functions that several attacks share: scores without learning, and scores that scikit-learn learns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from rag_audit.lab.attacks.interface import AttackError, Floats, Reply, Scorer


def first_feature(features: Floats) -> Floats:
    """The first feature as it is."""
    return np.asarray(features[:, 0])


class FirstFeature:
    """An attack with its first feature as its score. By default it uses only the replies' texts, and no learning."""

    probabilities: ClassVar[bool] = False
    embeds: ClassVar[bool] = False
    learns: ClassVar[str] = "nothing"

    def fit(self, features: Floats, labels: Floats) -> Scorer:
        """Return the fixed scorer; this attack does not learn."""
        return first_feature


def learn(features: Floats, labels: Floats, *, forest: bool) -> Scorer:
    """A classifier's probability of membership, by a random forest or logistic regression with a fixed seed.

    :raises AttackError: the documents are all members, or all not
    """
    # Imported here, since the other attacks do not need it. `methods.chosen` checks that it is installed.
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(set(labels.tolist())) < 2:
        raise AttackError("no data for training", field="reference", expected="members and others")
    model = (
        RandomForestClassifier(200, min_samples_leaf=5, random_state=0, n_jobs=1)
        if forest
        else make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    )
    model.fit(features, labels)
    return lambda actual: np.asarray(model.predict_proba(actual)[:, 1], np.float64)


def logs_of(replies: Sequence[Reply]) -> list[float]:
    """The log-probabilities of several replies, concatenated.

    :raises AttackError: the service gives none
    """
    result: list[float] = []
    for reply in replies:
        if reply.log_probabilities is None:
            raise AttackError("the service gives no log-probabilities", field="target",
                              hint="choose attacks that need none (`rag-audit lab attack list`)")  # fmt: skip
        result += reply.log_probabilities
    return result


def least_average(logs: Sequence[float], share: float) -> float:
    """The average of the lowest share of log-probabilities, at least one of them. An empty sequence gives 0, since
    -inf would be uninformative."""
    lowest = sorted(logs)[: max(1, math.ceil(share * len(logs)))]
    return sum(lowest) / len(lowest) if lowest else 0.0
