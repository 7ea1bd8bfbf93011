"""One process for all windows of a provider: its configuration (`config`), the folders of its windows (`shelf`), its
next act (`supervisor`), and its answering services (`service.windows`, `service.lines`).
"""
