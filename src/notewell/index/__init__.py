"""Keeping the index up to date with the files."""
