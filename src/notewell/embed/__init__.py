"""Text to unit vectors: local and remote models, which of them answers, and rerankers."""
