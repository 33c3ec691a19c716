"""Building on several machines: workers of a Dask cluster write a segment of each repository, the client merges them.

Dask pickles what it sends between client, scheduler and workers: whoever reaches a scheduler's port can run code on all
of them. Use it on a network of your own, or with Dask's TLS settings. What a worker sends back is a zip of arrays and a
database; nothing of it is unpickled.
"""
