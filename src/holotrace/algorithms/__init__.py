"""Algorithms on arrays and texts, independent of traces."""
