"""Communication overlap: what is computed, and how it is drawn."""
