"""`python -m rag_audit`."""

from rag_audit.cli import main

main(prog_name="rag-audit")
