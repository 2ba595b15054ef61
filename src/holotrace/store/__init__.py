"""Traces as tables: what a rank holds, and the cache that keeps it on disk."""
