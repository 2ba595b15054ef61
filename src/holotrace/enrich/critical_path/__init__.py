"""Builds the graph of dependencies between events, and finds the longest path through it."""
