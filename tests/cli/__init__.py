"""Tests of ncs.cli."""
