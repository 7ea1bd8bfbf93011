"""Hooks of mkdocs: the site names a file outside docs/, or a folder, instead of linking to it.

The pages link to sources, vectors and folders of the checkout. The site has no pages for them, and the project
publishes no address for them, so the site shows their paths without a link.
"""

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:]+)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Returns the page's text in which the words and a path replace each link to a folder or to a file outside docs/.

    Example: on `docs/setup.md`, `[the key](../SECURITY.md#the-release-key)` becomes ``the key (`SECURITY.md`)``.
    """
    folder = posixpath.dirname(page.file.src_uri)

    def outside(match: re.Match[str]) -> str:
        words, target = match[1], match[2].partition("#")[0]
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        is_page = not target or (path.startswith("docs/") and posixpath.splitext(path)[1])
        return match[0] if is_page else f"{words} (`{path}`)"

    return LINK.sub(outside, markdown)
