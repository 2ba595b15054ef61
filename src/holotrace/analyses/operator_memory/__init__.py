"""Operator memory: the question, its computation, tables and figure."""
