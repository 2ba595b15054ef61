"""Simulates jobs in which ranks are late for known reasons, and computes how much waiting time each reason causes."""
