"""Algorithms on arrays and strings, independent of traces."""
