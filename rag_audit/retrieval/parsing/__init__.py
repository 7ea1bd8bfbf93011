"""Parsers of file formats. They run in a process of their own (`child`), since the files come from strangers."""
