"""Simulated jobs in which some ranks are late for a known reason, and what the others wait because of each reason."""
