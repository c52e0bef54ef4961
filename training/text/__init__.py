"""The training text: one module a source, each yielding groups of texts that belong together."""
