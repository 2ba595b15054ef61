"""Memory bandwidth: what is computed, and how it is drawn."""
