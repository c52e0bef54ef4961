"""Pure functions over text: no file, no clock, no store."""
