"""An index served by Milvus, for those who outgrow one machine: Milvus finds candidates, the ranking stays ours.

`publish` sends an index there, `MilvusIndex` asks it. The index folder stays where it is: words, names and scores are
read from it; Milvus says which documents to score.
"""
