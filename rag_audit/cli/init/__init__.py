"""`rag-audit init`: from a folder of documents to the files of a service."""
