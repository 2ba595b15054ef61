"""Temporal breakdown: what is computed, and how it is drawn."""
