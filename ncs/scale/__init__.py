"""Scaling beyond one machine: building on a Dask cluster, searching in Milvus."""
