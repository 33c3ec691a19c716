"""Measures, runs and reports."""
