"""Compiled regions."""
