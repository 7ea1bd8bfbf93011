"""A small part of PromQL, for the rules in docs/deploy/alerts.yml: selectors with equal labels, `increase` and `rate` over
scrapes, `sum`, `time()`, arithmetic and comparisons between series with the same labels, and `and` and `or`.

Whoever writes a rule with another construct gets an error here, and no silent value.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
_TOKEN = re.compile(r'\s*(?:([0-9.]+)(?![0-9a-z])|([a-zA-Z_][a-zA-Z0-9_]*)|("[^"]*")|(==|!=|<=|>=|[-+*/<>(){}\[\],=])|([0-9]+[smhd]))')  # fmt: skip
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": lambda a, b: a / b if b else float("nan"),
}  # fmt: skip
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class Scrape:
    """The metrics of one moment.

    :param at: seconds since the epoch
    """

    at: float
    samples: dict[str, Vector]

    @classmethod
    def of(cls, at: float, text: bytes) -> Scrape:
        samples: dict[str, Vector] = {}
        for family in text_string_to_metric_families(text.decode()):
            for sample in family.samples:
                samples.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        return cls(at, samples)


def names(expression: str) -> set[str]:
    """The metrics of an expression."""
    return {word for word in re.findall(r"\brag_audit_\w+", expression)}


def evaluate(expression: str, scrapes: list[Scrape]) -> Vector:
    """The value of an expression at the last scrape; a comparison leaves the series for which it is true."""
    result = _Evaluation(expression, scrapes).whole()
    assert isinstance(result, dict), expression
    return result


class _Evaluation:
    def __init__(self, expression: str, scrapes: list[Scrape]) -> None:
        self._scrapes, self._now = scrapes, scrapes[-1].at
        self._tokens: list[str] = []
        place = 0
        while place < len(expression.rstrip()):
            match = _TOKEN.match(expression, place)
            assert match is not None, f"unknown at {expression[place:]!r}"
            self._tokens.append(match[0].strip())
            place = match.end()

    def whole(self) -> Vector | float:
        result = self._either()
        assert not self._tokens, f"left over: {self._tokens}"
        return result

    def _next(self, *wanted: str) -> str | None:
        return self._tokens.pop(0) if self._tokens and (not wanted or self._tokens[0] in wanted) else None

    def _need(self, wanted: str) -> None:
        assert self._next(wanted), f"{wanted} is missing before {self._tokens}"

    def _either(self) -> Vector | float:
        left = self._both()
        while self._next("or"):
            right = self._both()
            assert isinstance(left, dict) and isinstance(right, dict)
            left = {**right, **left}
        return left

    def _both(self) -> Vector | float:
        left = self._comparison()
        while self._next("and"):
            right = self._comparison()
            assert isinstance(left, dict) and isinstance(right, dict)
            left = {labels: value for labels, value in left.items() if labels in right}
        return left

    def _comparison(self) -> Vector | float:
        left = self._sum()
        if sign := self._next(*_COMPARED):
            right = self._sum()
            assert isinstance(left, dict) and isinstance(right, float), "a series is compared with a number"
            return {labels: value for labels, value in left.items() if _COMPARED[sign](value, right)}
        return left

    def _sum(self) -> Vector | float:
        left = self._product()
        while sign := self._next("+", "-"):
            left = _combined(_ARITHMETIC[sign], left, self._product())
        return left

    def _product(self) -> Vector | float:
        left = self._atom()
        while sign := self._next("*", "/"):
            left = _combined(_ARITHMETIC[sign], left, self._atom())
        return left

    def _atom(self) -> Vector | float:
        token = self._next()
        assert token is not None
        if token == "(":
            result = self._either()
            self._need(")")
            return result
        if re.fullmatch(r"[0-9.]+", token):
            return float(token)
        if token in ("time", "sum", "increase", "rate"):
            self._need("(")
            if token == "time":
                result: Vector | float = self._now
            elif token == "sum":
                inner = self._either()
                assert isinstance(inner, dict)
                result = {frozenset(): sum(inner.values())} if inner else {}
            else:
                name = self._next() or ""
                labels = self._labels()
                self._need("[")
                window = self._window()
                self._need("]")
                growth = self._growth(name, labels, window)
                result = {k: v / window if token == "rate" else v for k, v in growth.items()}
            self._need(")")
            return result
        assert token.startswith("rag_audit_"), token
        return _chosen(self._scrapes[-1], token, self._labels())

    def _window(self) -> float:
        number, unit = self._next(), None
        assert number is not None
        if match := re.fullmatch(r"([0-9]+)([smhd])", number):
            return int(match[1]) * _SECONDS[match[2]]
        unit = self._next()
        assert unit in _SECONDS
        return float(number) * _SECONDS[unit]

    def _labels(self) -> Labels:
        result = set()
        if self._next("{"):
            while not self._next("}"):
                name = self._next() or ""
                self._need("=")
                result.add((name, (self._next() or "").strip('"')))
                self._next(",")
        return frozenset(result)

    def _growth(self, name: str, labels: Labels, window: float) -> Vector:
        """The increase of counters within a time, without Prometheus' extrapolation."""
        inside = [s for s in self._scrapes if s.at >= self._now - window]
        first, last = _chosen(inside[0], name, labels), _chosen(inside[-1], name, labels)
        return {key: value - first[key] for key, value in last.items() if key in first}


def _chosen(scrape: Scrape, name: str, labels: Iterable[tuple[str, str]]) -> Vector:
    wanted = set(labels)
    return {key: value for key, value in scrape.samples.get(name, {}).items() if wanted <= key}


def _combined(
    function: Callable[[float, float], float], left: Vector | float, right: Vector | float
) -> Vector | float:
    if isinstance(left, dict) and isinstance(right, dict):
        return {key: function(value, right[key]) for key, value in left.items() if key in right}
    if isinstance(left, dict):
        assert isinstance(right, float)
        return {key: function(value, right) for key, value in left.items()}
    if isinstance(right, dict):
        return {key: function(left, value) for key, value in right.items()}
    return function(left, right)
