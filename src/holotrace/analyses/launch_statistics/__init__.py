"""Launch statistics: what is computed, and how it is drawn."""
