"""What noise costs and what it buys, on a provider's own documents and questions."""
