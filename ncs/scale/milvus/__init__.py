"""An index served by Milvus, for those who outgrow one machine: it finds candidates, the ranking stays ours.

`publish` puts an index there, `MilvusIndex` asks it. The index folder stays where it is: what re-ranks (words, names
used and defined, places) is read from it, postings and document vectors are not.
"""
