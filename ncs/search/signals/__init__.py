"""The signals and factors of the default ranker: pure functions over rows and what the index knows of them."""
