"""Executors that run work on ranks, independent of traces."""
