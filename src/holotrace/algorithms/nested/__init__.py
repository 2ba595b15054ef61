"""Ranges that lie inside one another."""
