"""Models that a build learns from a corpus: word vectors, encoders, learned heads, confidence and tuned weights."""
