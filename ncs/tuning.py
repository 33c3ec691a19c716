"""A user's own questions with the functions that answer them, as weights of their index."""
