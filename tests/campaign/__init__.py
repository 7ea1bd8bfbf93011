"""Campaigns: many cases, each a function of its seed, that look for what no single test names.

`verdicts` mutates windows, receipts, trust files and notes and verifies them; `kills` ends a service under load. Both run
in `make test-full`, and alone: ``python -m tests.campaign.verdicts --cases 10000 --seed 7``.
"""
