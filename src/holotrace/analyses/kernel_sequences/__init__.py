"""Kernel sequences: what is computed, and how it is drawn."""
