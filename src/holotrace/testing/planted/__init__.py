"""Simulated jobs in which some ranks are late for known reasons, and how long each reason makes the other ranks wait."""
