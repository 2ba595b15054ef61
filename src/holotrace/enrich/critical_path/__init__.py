"""The graph of what had to happen before what, and the longest path through it."""
