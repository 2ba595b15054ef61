"""Roofline: the question, its computation, tables and figure."""
