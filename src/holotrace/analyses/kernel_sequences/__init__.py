"""Kernel sequences: the question, its computation, tables and figure."""
