"""The files of an index: snapshots of segments, with documents, words, postings, vectors and names."""
