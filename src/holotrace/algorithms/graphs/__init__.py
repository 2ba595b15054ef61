"""Paths and amounts in graphs of dependencies."""
