"""Traces as tables: the tables of a rank, the cache on disk, and the store of a whole job."""
