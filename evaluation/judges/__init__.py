"""Automatic judges of whether a function answers a question."""
