"""Causes of waiting: the question, its computation, tables and figure."""
