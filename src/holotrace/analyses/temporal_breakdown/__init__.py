"""Temporal breakdown: the question, its computation, tables and figure."""
