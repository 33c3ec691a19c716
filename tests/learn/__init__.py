"""Tests of ncs.learn."""
