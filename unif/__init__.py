"""Learnt heads: trained with torch on (question, code) pairs, served with numpy."""
