"""Tests of ncs.storage."""
