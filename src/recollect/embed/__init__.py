"""Text to unit vectors: packaged local models, a deterministic one for tests and last resort, a cache."""
