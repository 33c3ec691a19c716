"""Data sets in one shape; the data itself is not in git."""
