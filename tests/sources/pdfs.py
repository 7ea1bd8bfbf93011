"""PDF files for tests, written object by object: no library that reads PDF files is needed to make them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
WIDTH, HEIGHT = 300, 200


def written(objects: Sequence[bytes | str], *, root: int = 1, trailer: str = "") -> bytes:
    """A PDF file of these objects, numbered from 1."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, item in enumerate(objects, 1):
        places.append(len(out))
        data = item.encode("latin-1") if isinstance(item, str) else item
        out += b"%d 0 obj\n" % number + data + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += f"trailer << /Size {len(objects) + 1} /Root {root} 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def stream(content: bytes | str, entries: str = "") -> bytes:
    """A stream object."""
    data = content.encode("latin-1") if isinstance(content, str) else content
    return f"<< /Length {len(data)} {entries} >>\nstream\n".encode() + data + b"\nendstream"


def document(*contents: str, title: str = "", resources: str = "", more: Sequence[bytes | str] = (), count: int | None = None) -> bytes:  # fmt: skip
    """A PDF file with a page for each content stream, in Helvetica as /F1.

    :param resources: what else each page's resources have
    :param more: further objects, numbered from 5 on
    :param count: the number of pages that the file claims to have
    """
    pages = 5 + len(more)
    kids = " ".join(f"{pages + 2 * n} 0 R" for n in range(len(contents)))
    objects: list[bytes | str] = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents) if count is None else count} >>",
        FONT,
        f"<< /Title ({title}) >>" if title else "<< >>",
        *more,
    ]
    for number, content in enumerate(contents):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents {pages + 2 * number + 1} 0 R"
            f" /Resources << /Font << /F1 3 0 R >> {resources} >> >>",
            stream(content),
        ]
    return written(objects, trailer="/Info 4 0 R")


def line(text: str, x: float = 10, y: float = 100) -> str:
    """The operators that show a line of text."""
    return f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET\n"


def pdf(*pages: str) -> bytes:
    """A PDF file with one line of text on each page; a page without text has no operators."""
    return document(*(line(text) if text else "" for text in pages), title="A handbook")


PICTURE = stream(zlib.compress(bytes(100)), "/Type /XObject /Subtype /Image /Width 10 /Height 10 /BitsPerComponent 8"
                 " /ColorSpace /DeviceGray /Filter /FlateDecode")  # fmt: skip
SCAN = f"q {WIDTH} 0 0 {HEIGHT} 0 0 cm /Scan Do Q\n"
"""The operators that draw `PICTURE` over the page, if it is the object 5 and the resources are `SCANNED`."""
SCANNED = "/XObject << /Scan 5 0 R >>"
