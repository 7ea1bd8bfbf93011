"""The verifier as one page for a browser (docs/browser.md).

`assets` brings what the page is made of, `page` puts it together, `face/` is what its reader sees, `inside/`
runs there.
"""
