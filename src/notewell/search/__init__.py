"""A question through legs, fusion and stages to a traced, explained list."""
