"""Rankers: how a query becomes scored rows, and why each row has its score."""
