"""An account's questions as retrievers of LangChain, LlamaIndex and Haystack, each an extra of its own."""
