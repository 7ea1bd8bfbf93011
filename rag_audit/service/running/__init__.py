"""One process for all windows of a provider: what it is told (`config`), where it keeps them (`shelf`), what it does
next (`supervisor`), and who answers meanwhile (`service.windows`, `service.lines`).
"""
