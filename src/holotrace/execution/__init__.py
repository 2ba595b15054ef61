"""Executors that run work on ranks; they do not depend on traces."""
