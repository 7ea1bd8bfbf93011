"""Explorations of a policy's cost in recall and gain in privacy, on a provider's own documents and questions."""
