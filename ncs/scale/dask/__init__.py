"""Building on several machines: workers of a Dask cluster read repositories, this one puts them together.

`ncs.scale.dask.build.read` does for a cluster what `ncs.build.ingest.read` does for processes of one machine.

What Dask itself sends between client, scheduler and workers is pickled: whoever reaches a scheduler's port can run
code on all of them. Use it on a network of your own, or with Dask's TLS settings. What comes back from a worker is
read as JSON and plain arrays (ncs.scale.dask.shards), and nothing of it is unpickled by us.
"""
