"""The languages of the HTML report: sentences of the message catalogue, numbers, and the mark of untranslated text.

Templates and modules contain the English sentences, which are also the ids of the catalogue. `locale/LANGUAGE.po` has
the translations of one language, and `packaging/catalogue.py` collects the ids and compiles the translations. A
sentence without a translation appears in English, and its element names English as its language (WCAG 2.2, 3.1.2).
"""

from __future__ import annotations

import gettext
import html
import io
import struct
from collections.abc import Iterable
from functools import cache
from importlib import resources

from markupsafe import Markup

from rag_audit._internal.errors import SetupError
from rag_audit._internal.printable import printable
from rag_audit.report.languages import LANGUAGES

_SEPARATORS = {"en": str.maketrans("", ""), "de": str.maketrans(",.", ".,")}
"""From the separators of English numbers to those of a language."""


def _untranslated(message: str) -> str:
    return f'<span lang="en">{message}</span>'


class _Untranslated(gettext.NullTranslations):
    """Marks a sentence without a translation as English."""

    def gettext(self, message: str) -> str:
        return _untranslated(message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


class Language:
    """The sentences and numbers of one language.

    :param code: the name of the language (BCP 47), for the attribute `lang`
    :param catalogue: the translations
    """

    def __init__(self, code: str, catalogue: gettext.NullTranslations) -> None:
        self.code = code
        self.catalogue = catalogue

    def text(self, message: str, **values: object) -> Markup:
        """A sentence of the catalogue as markup. Values are escaped, and numbers get the separators of the language.

        :param message: the English sentence, with `%(name)s` for each value
        """
        return self._filled(self.catalogue.gettext(message), values)

    def plural(self, one: str, many: str, count: int, **values: object) -> Markup:
        """A sentence of the catalogue that depends on a number, which it contains as `%(count)s`."""
        return self._filled(self.catalogue.ngettext(one, many, count), {"count": count, **values})

    def translated(self, message: str) -> str:
        """A sentence of a template."""
        return self.catalogue.gettext(message)

    def translated_plural(self, one: str, many: str, count: int) -> str:
        """A sentence of a template that depends on a number."""
        return self.catalogue.ngettext(one, many, count)

    def _filled(self, message: str, values: dict[str, object]) -> Markup:
        return Markup(Markup(message) % {name: self.shown(value) for name, value in values.items()})

    def shown(self, value: object) -> Markup:
        """A value as markup: text is escaped, an integer gets separated thousands, and None is empty."""
        if isinstance(value, Markup):
            return value
        if value is None:
            return Markup()
        if isinstance(value, int):
            return Markup(self.number(f"{value:,}"))
        return Markup(html.escape(printable(str(value))))

    def number(self, value: str) -> str:
        """An English number or range, such as ``1,234.5`` or ``1,024..8,192``, with the separators of the language."""
        return "..".join(part.translate(_SEPARATORS[self.code]) for part in value.split(".."))

    def known(self, text: str) -> Markup:
        """A sentence of the report without values: translated if the catalogue has it, otherwise quoted."""
        found = self.catalogue.gettext(text) if text else ""
        return self.quoted(text) if found == _untranslated(text) else self.shown(found)

    def quoted(self, text: str | None) -> Markup:
        """English text of the report, which no catalogue contains; other languages mark it as English."""
        shown = self.shown(text)
        return shown if self.code == "en" or not shown else Markup('<span lang="en">{}</span>').format(shown)

    def joined(self, items: Iterable[object], separator: str = " ") -> Markup:
        """Sentences after one another, or parts of a sentence."""
        return Markup(separator).join(self.shown(item) for item in items)

    def listed(self, items: Iterable[object]) -> Markup:
        """Items as a list in a sentence: ``a``, ``a and b``, ``a, b and c``."""
        shown = [self.shown(item) for item in items]
        if len(shown) < 2:
            return Markup().join(shown)
        return self.text("%(items)s and %(last)s", items=Markup(", ").join(shown[:-1]), last=shown[-1])


@cache
def language_of(code: str) -> Language:
    """A language of `LANGUAGES`.

    :raises SetupError: the report has no such language, or this installation lacks its catalogue
    """
    if code not in LANGUAGES:
        raise SetupError(
            "the report has no such language", field="--language", expected=", ".join(LANGUAGES), actual=code
        )
    if code == LANGUAGES[0]:
        return Language(code, gettext.NullTranslations())
    path = resources.files("rag_audit.report").joinpath("locale", f"{code}.mo")
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise SetupError.of_os_error(
            exc,
            "the message catalogue of this language is missing from this installation",
            field=f"locale/{code}.mo",
            hint="reinstall rag-audit, or choose --language en",
        ) from exc
    try:
        catalogue = gettext.GNUTranslations(io.BytesIO(data))
    except (OSError, ValueError, LookupError, struct.error) as exc:
        raise SetupError(
            "the message catalogue of this language is damaged",
            field=f"locale/{code}.mo",
            expected="a compiled gettext catalogue",
            actual=str(exc),
            hint="reinstall rag-audit, or choose --language en",
        ) from exc
    catalogue.add_fallback(_Untranslated())
    return Language(code, catalogue)
