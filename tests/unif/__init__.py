"""Tests of learned heads: their training with torch, and what serves them without."""
