"""Candidates from Milvus, for indexes that outgrow one machine.

`publish` sends an index there, `MilvusIndex` searches it. Words, names and scores are read from the index folder;
Milvus finds the documents to score.
"""
