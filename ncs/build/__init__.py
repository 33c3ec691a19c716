"""Building, updating, watching and tuning an index."""
