"""Source files of .zip and .tar archives, read without unpacking them to disk."""

from __future__ import annotations
