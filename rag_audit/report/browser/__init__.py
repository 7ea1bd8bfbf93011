"""The verifier as one page for a browser (docs/browser.md).

`assets` fetches the parts of the page, `page` assembles them, `frontend/` is the visible part, `inside/` runs in the
page's Python.
"""
