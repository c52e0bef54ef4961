"""The index as one SQLite file."""
