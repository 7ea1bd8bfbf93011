"""The languages of the HTML report, for commands and for the page."""

LANGUAGES = ("en", "de")
"""The first is the language of the catalogue's ids."""
