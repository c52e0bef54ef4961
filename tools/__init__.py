"""Scripts for maintainers; not part of the wheel."""
