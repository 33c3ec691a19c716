"""What reorders a ranking: one file a signal, each a pure function over rows and facts about them."""
