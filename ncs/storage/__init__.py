"""What an index holds on disk: snapshots of segments, with documents, words, postings, vectors and names."""
