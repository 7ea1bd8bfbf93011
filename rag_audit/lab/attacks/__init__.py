"""Published membership attacks and defences, run against this project's engine, a window, or any chat endpoint
(docs/attacks.md)."""
