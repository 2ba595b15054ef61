"""Executors, which process several ranks in parallel; this code does not depend on traces."""
