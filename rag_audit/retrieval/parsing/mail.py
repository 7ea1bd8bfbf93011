"""The text of an e-mail message (RFC 5322, MIME)."""

from __future__ import annotations

from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import BinaryIO

import webencodings

from rag_audit._internal.characters import refuse_nul
from rag_audit.retrieval.parsing import html
from rag_audit.retrieval.parsing.results import DocumentsError, Omission, ReadFile, Section, titled

SHOWN = ("From", "To", "Cc", "Date", "Subject")
"""The header fields that the reader puts above the text."""


def read(file: BinaryIO) -> ReadFile:
    """A message's header and text: its plain text if it has one, otherwise its HTML. Attachments are named as omitted.

    :raises DocumentsError: the file is no message, or its text is in an unknown encoding
    """
    parsed = BytesParser(policy=policy.default).parse(file)
    assert isinstance(parsed, EmailMessage)
    fields = [(name, " ".join(str(parsed[name]).split())) for name in SHOWN if parsed[name]]
    if not fields:
        raise DocumentsError(
            "the file is not an e-mail message", expected="a header field: From, To, Date, Subject"
        )
    texts: list[str] = []
    omitted: list[Omission] = []
    _gather(parsed, texts, omitted)
    header = "\n".join(f"{name}: {value}" for name, value in fields)
    text = "\n\n".join([header, *filter(None, texts)])
    return ReadFile((Section(text, titled(parsed["Subject"])),), tuple(omitted))


def _gather(part: EmailMessage, texts: list[str], omitted: list[Omission]) -> None:
    """Collect the texts of a part and of its inner parts, and name the parts that are not read."""
    kind = part.get_content_type()
    if kind == "multipart/alternative":
        chosen = part.get_body(("plain", "html"))
        if isinstance(chosen, EmailMessage) and not chosen.is_multipart():
            _gather(chosen, texts, omitted)
            return
    if part.is_multipart() and kind != "message/rfc822":
        for inner in part.iter_parts():
            if isinstance(inner, EmailMessage):
                _gather(inner, texts, omitted)
    elif kind in ("text/plain", "text/html") and not part.is_attachment() and not part.get_filename():
        texts.append(_text(part, kind, omitted))
    elif part.get_content_maintype() != "image" or "content-id" not in part:  # pictures that the HTML shows
        name = part.get_filename() or f"of type {kind}"
        omitted.append(Omission("is not read: save it as a file of its own", part=f"the attachment {name}"))


def _text(part: EmailMessage, kind: str, omitted: list[Omission]) -> str:
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)
    label = part.get_content_charset()
    if kind == "text/html" and label is None:
        page, encoding, broken = html.decode(data)
    else:
        known = webencodings.lookup(label or "utf-8")
        if known is None:
            raise DocumentsError("the message's encoding is not known", actual=label,
                                 expected="an encoding of the Encoding Standard")  # fmt: skip
        page, encoding, broken = html.decoded(data, known.name)
    if kind == "text/html":
        read = html.read_page(page, encoding, broken)
        omitted.extend(read.omitted)
        return read.sections[0].text
    refuse_nul(page, source="message")
    if broken:
        omitted.append(
            Omission(f"are not valid {encoding} and were replaced by U+FFFD", part=f"{broken} characters")
        )
    return page.replace("\r\n", "\n").strip()
