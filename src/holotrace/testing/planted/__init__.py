"""Simulates jobs in which ranks are late for known reasons, and what waiting each reason causes."""
