"""Benchmarks: `bin/benchmark` lists them, `bin/benchmark NAME` runs one."""
