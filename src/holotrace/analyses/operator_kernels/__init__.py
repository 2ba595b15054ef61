"""Operator kernels: what is computed, and how it is drawn."""
