"""Is this function an answer to that question? Judges that decide without people."""
