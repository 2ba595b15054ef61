"""Cupti counters: what is computed, and how it is drawn."""
