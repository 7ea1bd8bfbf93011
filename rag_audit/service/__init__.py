"""A provider's window over HTTP: an ASGI application, and the server that runs it (docs/http.md)."""
