"""Naming, writing, forgetting and linking notes."""
