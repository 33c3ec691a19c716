"""Fuzzers: random hostile input for what reads a stranger's files and requests; `bin/fuzz TARGET`."""
