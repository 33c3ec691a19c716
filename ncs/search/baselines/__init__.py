"""Published methods and external models to compare the default ranker with."""
