"""Decoding the bytes of text files: UTF-8, or UTF-16 with a byte order mark."""

from __future__ import annotations

import codecs

from rag_audit._internal.errors import EncodingError

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
"""The byte order marks of the Encoding Standard ("BOM sniff"), with Python's name of each encoding."""
REMEDY = "save the file as UTF-8 text"


def decode_text(data: bytes, *, source: str) -> str:
    """Decode a text file: UTF-8 with or without a byte order mark, or UTF-16 with one. The mark is removed.

    :param source: the name of the file, for the error's `field`
    :raises EncodingError: the bytes are not valid in that encoding, or the text contains the character NUL
    """
    encoding = "utf-8"
    for mark, name in MARKS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :], name
            break
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        shown = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        raise EncodingError(f"the file is not {shown}", field=source, actual=f"byte {exc.start}: {exc.reason}",
                            hint=REMEDY) from exc  # fmt: skip
    refuse_nul(text, source=source)
    return text


def refuse_nul(text: str, *, source: str) -> None:
    """Refuse a text with the character NUL. Some stores cannot store such a text, and binary files contain NUL.

    :raises EncodingError: the text contains NUL
    """
    if (place := text.find("\0")) >= 0:
        raise EncodingError("the text contains the character NUL", field=source, actual=f"at character {place + 1}",
                            hint=f"check that this is a text file; {REMEDY}")  # fmt: skip
