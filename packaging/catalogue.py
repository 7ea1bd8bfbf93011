"""The message catalogue of the HTML report: collects the sentences of templates and modules, and compiles translations.

python packaging/catalogue.py            collect the ids, add them to each language, and compile each language
python packaging/catalogue.py --check    compare the files with the sources; exit code 1 if one differs
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from rag_audit.report.explanations import explanations
from rag_audit.report.languages import LANGUAGES

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "rag_audit/report"
LOCALE = REPORT / "locale"
TEMPLATE = LOCALE / "messages.pot"
"""The English catalogue: each id is the English sentence."""
METHODS = [
    ("templates/**.j2", "jinja2"),
    ("html/**.py", "python"),
    ("*.py", "python"),
]
MECHANISMS = ROOT / "rag_audit/mechanisms/descriptions"
OPTIONS = {
    "templates/**.j2": {
        "extensions": "jinja2.ext.i18n,rag_audit.report.html.page.Compact",
        "trimmed": "true",
        "silent": "false",
        "newstyle_gettext": "true",
    }
}
KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "text": None, "plural": (1, 2), "marked": None}
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_DATED = datetime(2000, 1, 1, tzinfo=UTC)
"""A constant date, so that equal sources give equal files."""


def collected() -> Catalog:
    """The sentences of the sources."""
    catalogue = Catalog(project="rag-audit", copyright_holder="rag-audit", charset="utf-8", fuzzy=False,
                        creation_date=_DATED, revision_date=_DATED)  # fmt: skip
    found = [
        *extract_from_dir(str(REPORT), METHODS, OPTIONS, keywords=KEYWORDS),
        *extract_from_dir(str(MECHANISMS), [("*.py", "python")], keywords=KEYWORDS),
    ]
    for name, _line, message, _comments, context in found:
        catalogue.add(message, None, [(name, None)], context=context)
    for explanation in explanations().values():
        for text in (explanation.means, explanation.failed, *explanation.honest_causes, explanation.ask):
            catalogue.add(text, None, [("explanations.toml", None)])
    return catalogue


def sentences(catalogue: Catalog) -> Iterator[Message]:
    """The messages of a catalogue without its header."""
    return (message for message in catalogue if message.id)


def translated(code: str) -> Catalog:
    """The translations of a language."""
    path = LOCALE / f"{code}.po"
    if not path.is_file():
        return Catalog(locale=code, charset="utf-8", fuzzy=False, creation_date=_DATED, revision_date=_DATED)
    return read_po(io.BytesIO(path.read_bytes()), locale=code)


def faults(template: Catalog, catalogue: Catalog) -> list[str]:
    """The differences between a language and the English catalogue: ids, placeholders, missing translations."""
    result = []
    ids = {message.id if isinstance(message.id, str) else message.id[0] for message in sentences(template)}
    own = {message.id if isinstance(message.id, str) else message.id[0] for message in sentences(catalogue)}
    result += [f"no translation: {name}" for name in sorted(ids - own)]
    result += [f"not in the sources: {name}" for name in sorted(own - ids)]
    for message in sentences(catalogue):
        forms = [message.string or ""] if isinstance(message.id, str) else [*(message.string or ("",))]
        english = [message.id] if isinstance(message.id, str) else [*message.id]
        wanted = set(PLACEHOLDER.findall(english[-1]))
        if message.fuzzy or not all(forms):
            result.append(f"no translation: {english[0]}")
        elif (
            any(set(PLACEHOLDER.findall(form)) - {"count"} != wanted - {"count"} for form in forms)
            or set(PLACEHOLDER.findall(forms[-1])) != wanted
        ):
            result.append(f"other placeholders: {english[0]}")
        elif any(re.sub(PLACEHOLDER, "", form).replace("%%", "").count("%") for form in forms):
            result.append(f"a per cent sign that is not doubled: {english[0]}")
    return result


def po(catalogue: Catalog) -> bytes:
    """A catalogue as text."""
    out = io.BytesIO()
    write_po(
        out,
        catalogue,
        width=120,
        sort_by_file=False,
        include_lineno=False,
        omit_header=False,
        ignore_obsolete=True,
    )
    return out.getvalue()


def mo(catalogue: Catalog) -> bytes:
    """A catalogue as gettext reads it."""
    out = io.BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def main() -> int:
    """Write or check the files."""
    template = collected()
    files = {TEMPLATE: po(template)}
    wrong = []
    for code in LANGUAGES[1:]:
        catalogue = translated(code)
        catalogue.update(template, no_fuzzy_matching=True, update_creation_date=False)
        catalogue.obsolete.clear()
        wrong += [f"{code}: {fault}" for fault in faults(template, catalogue)]
        files[LOCALE / f"{code}.po"] = po(catalogue)
        files[LOCALE / f"{code}.mo"] = mo(catalogue)
    if "--check" in sys.argv:
        wrong += [f"out of date: {path.relative_to(ROOT)}" for path, data in files.items()
                  if not path.is_file() or path.read_bytes() != data]  # fmt: skip
    else:
        for path, data in files.items():
            path.write_bytes(data)
    print(
        "\n".join(wrong) or f"{len(list(sentences(template)))} sentences",
        file=sys.stderr if wrong else sys.stdout,
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
