"""Nested ranges."""
