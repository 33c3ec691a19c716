"""Past one machine: Dask reads sources on many machines, Milvus answers for many readers."""
