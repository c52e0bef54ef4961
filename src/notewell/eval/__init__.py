"""Measuring the ranking on labelled questions, anybody's own included."""
