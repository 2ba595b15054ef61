"""HTA's import paths for single functions and constants of its analyses."""
