"""Whether two texts say the same."""
