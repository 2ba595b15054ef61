"""Simulates training jobs on GPUs, each slowed by one mistake, and the same job without it."""
