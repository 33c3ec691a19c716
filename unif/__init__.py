"""Training of learned heads with torch on (question, code) pairs; `ncs` serves them without it."""
