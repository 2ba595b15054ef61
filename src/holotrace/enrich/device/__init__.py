"""Analyses device work, the calls that launched it, and synchronisation."""
