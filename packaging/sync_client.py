"""Write the account's client without asyncio from the one with asyncio: `python packaging/sync_client.py`.

The script removes the keywords `async` and `await`, replaces names by `NAMES`, and formats the result with ruff. A test
compares the committed file with `generated()`.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[1] / "rag_audit/account/client"
HEADER = '"""An account\'s client without asyncio, generated from `asynchronous.py` by `packaging/sync_client.py`."""'
NAMES = {
    "AsyncBaseTransport": "BaseTransport",
    "AsyncClient": "Client",
    "AsyncClosing": "Closing",
    "aclose": "close",
    "ask_in_a_thread": "Account.ask",
    "asyncio": "time",
    "body_of_async": "body_of",
}
"""The names of the asynchronous client, with their replacements in the other client."""
UNUSED = "from rag_audit.account.client.threads import ask_in_a_thread\n"


def generated() -> str:
    """Return the text of `sync.py`."""
    source = (CLIENT / "asynchronous.py").read_text().replace(UNUSED, "")
    text = "".join(_lines(source))
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    command = [ruff, "format", "--stdin-filename", str(CLIENT / "sync.py"), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _lines(source: str) -> list[str]:
    """Return the lines of the source without its docstring, without the keywords and with the names replaced."""
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token in reversed(tokens):
        if token.type != tokenize.NAME:
            continue
        (row, start), (_, end) = token.start, token.end
        line = lines[row - 1]
        if token.string in ("async", "await"):
            lines[row - 1] = line[:start] + line[end + 1 :]
        else:
            lines[row - 1] = line[:start] + NAMES.get(token.string, token.string) + line[end:]
    docstring = next(token for token in tokens if token.type == tokenize.STRING)
    return [HEADER + "\n", *lines[docstring.end[0] :]]


if __name__ == "__main__":
    (CLIENT / "sync.py").write_text(generated())
