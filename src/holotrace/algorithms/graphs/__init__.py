"""Paths through graphs of dependencies, and amounts passed along their edges."""
