"""rag-audit: how much can a multi-tenant RAG service leak through retrieval to a coalition of accounts?"""

__version__ = "0.1.0"
