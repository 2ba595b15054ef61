"""Simulates pairs of training jobs: one job is slowed by a mistake, and the other is the same job without it."""
