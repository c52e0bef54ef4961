"""Readers of what people bring from elsewhere, one small module a format; `formats.py` is the
table.
"""
