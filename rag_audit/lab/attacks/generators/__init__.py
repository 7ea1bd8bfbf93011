"""Generators: a local extractive one, and any OpenAI-compatible endpoint."""
