"""Executors that process several ranks in parallel; nothing in this package is specific to traces."""
