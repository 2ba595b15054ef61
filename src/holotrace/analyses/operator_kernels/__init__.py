"""Operator kernels: the question, its computation, tables and figure."""
