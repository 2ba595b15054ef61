"""HTA's import paths for the functions and constants behind its analyses."""
