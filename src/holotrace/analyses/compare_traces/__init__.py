"""Compare traces: what is computed, and how it is drawn."""
