"""Where chunks, terms and vectors are kept."""
