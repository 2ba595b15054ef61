"""Ranges that are inside one another."""
