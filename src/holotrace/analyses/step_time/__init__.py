"""Step time: what is computed, and how it is drawn."""
