"""Finds the calls of different ranks that are parts of the same operation."""
