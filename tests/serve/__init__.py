"""Tests of ncs.serve."""
