"""The index in a PostgreSQL database."""
