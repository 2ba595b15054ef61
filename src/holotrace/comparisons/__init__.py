"""Comparisons of two traces: what changed from one recording to another."""
