"""An integer encoder as the source of proofs of claim A1 (docs/scan/encoder-embed.md)."""

from __future__ import annotations

import logging
import shutil
from dataclasses import astuple
from functools import lru_cache, partial
from pathlib import Path

from rag_audit import _native
from rag_audit._internal.cache import build_once, cache_dir, progress, read_manifest, write_manifest
from rag_audit._internal.errors import SetupError
from rag_audit.models.manifest import LENGTH_CLASSES, ProvedEncoder
from rag_audit.retrieval.embedders.integer_bert.files import Files, load_files
from rag_audit.retrieval.embedders.integer_bert.installed import INSTALL, installed_folder
from rag_audit.retrieval.embedders.integer_bert.published import FILE_ARTEFACTS
from rag_audit.retrieval.embedders.integer_bert.semantics import Scales, exp_table, gelu_table

log = logging.getLogger(__name__)
PINS = "pins"
"""The name of the file in the user's cache."""
MAX_VOCABULARY = 1 << 15
"""hq packs tokens of 15 bits."""


class NotProvable(ValueError):
    """A model is outside the bounds of proofs."""


def pins_digest(files: Files) -> str | None:
    """The digest of the pins of a model, 64 hexadecimal digits; None if there are no proofs of its vectors."""
    try:
        return _encoder_model(files).digest().hex()
    except NotProvable as exc:
        log.warning("the vectors of the model in %s cannot be proved: %s", files.folder, exc)
        return None


def computed_digest(files: Files) -> str:
    """The digest of the pins of a model with proofs, computed from its files without the user's cache, in seconds.

    :raises NotProvable: there are no proofs of its vectors
    """
    return _native_model(files, None).digest().hex()


def proved_encoder(files: Files) -> ProvedEncoder:
    """A model as the source of proofs."""
    model, shape = files.model, files.model.shape
    return ProvedEncoder(
        partial(loaded_encoder, files.folder.absolute(), model.scales, model.digest()),
        weight_bytes=len(model.weights),
        activations=shape.layers * (8 * shape.width + 2 * shape.inner),
    )


@lru_cache(maxsize=2)
def loaded_encoder(folder: Path, scales: Scales, integers: str) -> _native.EncoderModel:
    """The model of a folder with the commitments to its parameters, loaded once by each process.

    :param folder: the folder of the process that asks for proofs. If this machine lacks it, the installed files
        replace those of all-MiniLM-L6-v2
    :param integers: digest of the model's integers (`IntegerModel.digest`)
    :raises SetupError: the folder or a file is missing, or the folder has another model than before
    """
    published = integers == FILE_ARTEFACTS["integers"]
    place = folder if folder.is_dir() else installed_folder() if published else None
    if place is None:
        raise SetupError("the folder of the model is missing on this machine", field=str(folder),
                         expected="the folder" + (" or the installed package" if published else ""),
                         hint=INSTALL if published else "put the model's files there")  # fmt: skip
    files = load_files(place, scales)
    if files.model.digest() != integers:
        raise SetupError("the folder has another model than before", field=str(place),
                         expected=integers, actual=files.model.digest())  # fmt: skip
    return _encoder_model(files)


def _encoder_model(files: Files) -> _native.EncoderModel:
    """The model with its pins from the user's cache. The computation of missing pins takes seconds.

    :raises NotProvable: the model is outside the bounds of proofs
    :raises SetupError: the cache cannot be written, or was altered
    """

    def write(target: Path) -> None:
        progress("making the pins of the integer encoder")
        (target / PINS).write_bytes(_native_model(files, None).pins())
        write_manifest(target, {})

    name = f"{files.model.digest()}-{files.model.scales.digest()[:16]}-{_first_token(files)}"
    folder = cache_dir("encoders") / name
    try:
        return _native_model(files, _stored(build_once(folder, write)))
    except NotProvable:  # the pins of an earlier release, in another encoding
        shutil.rmtree(folder, ignore_errors=True)
        return _native_model(files, _stored(build_once(folder, write)))


def _first_token(files: Files) -> int:
    """The special token before each text.

    :raises NotProvable: the model is outside the bounds of proofs
    """
    shape = files.model.shape
    special: list[int] = files.tokenizer.encode("").ids
    if not special:
        raise NotProvable("texts have no first special token")
    if shape.places < max(LENGTH_CLASSES) or shape.vocabulary > MAX_VOCABULARY:
        raise NotProvable(
            f"a proof needs {max(LENGTH_CLASSES)} places and at most {MAX_VOCABULARY} tokens in the vocabulary"
        )
    return special[0]


def _native_model(files: Files, pins: bytes | None) -> _native.EncoderModel:
    """The model with these pins; None computes them.

    :raises NotProvable: the model is outside the bounds of proofs, or the pins are not a model's of this shape
    """
    model, scales = files.model, files.model.scales
    tables, first = (exp_table(), gelu_table(scales.z, scales.g)), _first_token(files)
    try:
        return _native.EncoderModel(
            astuple(model.shape), astuple(scales), model.weights, *tables, first, pins
        )
    except (ValueError, OverflowError) as exc:
        raise NotProvable(str(exc)) from exc


def _stored(folder: Path) -> bytes:
    """The pins in a folder of the cache.

    :raises SetupError: the folder was altered
    """
    read_manifest(folder)
    return (folder / PINS).read_bytes()
