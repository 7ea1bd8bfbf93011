"""One form for texts that look the same, before they become tokens (docs/relation.md, "Vectors").

Readers of PDF and HTML deliver one sentence in several encodings: with ligatures, soft hyphens, spaces of several
widths, or decomposed letters. The tokens depend on the encoding, so a question would miss such a passage.
"""

from __future__ import annotations

import re
from unicodedata import normalize

NORMAL_FORM = "visible-1"
"""The name of this form, as manifests write it."""
_LINE_BREAKS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Line breaks of UAX 14 (classes BK, CR, NL) and of `str.splitlines`, except the line feed."""
_INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""The property Default_Ignorable_Code_Point (Unicode 15.1, DerivedCoreProperties.txt): soft hyphens, characters of no
width, marks of direction and variation."""
_COMPATIBLE = re.compile(
    "[\xa0\u0132\u0133\u2000-\u200a\u2011\u202f\u205f\u3000\ufb00-\ufdff\ufe70-\ufefc\uff00-\uffef]+"
)
"""Spaces, ligatures, contextual forms and forms of another width. Their compatibility mappings (UAX 15) keep the
appearance. The mappings of superscripts or circled digits change it, so those characters stay."""


def visible_form(text: str) -> str:
    """The text with line feeds as its line breaks, without invisible characters, in NFKC where it has spaces,
    ligatures, contextual forms or forms of another width, and in NFC elsewhere.

    The visible form of a visible form is that form.
    """
    lines = _INVISIBLE.sub("", _LINE_BREAKS.sub("\n", text))
    return normalize("NFC", _COMPATIBLE.sub(lambda run: normalize("NFKC", run[0]), lines))
