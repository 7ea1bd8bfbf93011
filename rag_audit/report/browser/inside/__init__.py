"""The Python modules that run in the page in addition to the verifier: replacements for compiled packages, and the
front end that takes the page's requests."""
