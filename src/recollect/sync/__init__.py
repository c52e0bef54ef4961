"""Bringing the index up to what is on disk."""
