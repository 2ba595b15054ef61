"""The graph of dependencies between events, and the longest path through it."""
