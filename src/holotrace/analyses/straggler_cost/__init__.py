"""Straggler cost: the question, its computation, tables and figure."""
