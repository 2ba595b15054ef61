"""Simulates pairs of training jobs: one slowed by a mistake, the other the same job without the mistake."""
