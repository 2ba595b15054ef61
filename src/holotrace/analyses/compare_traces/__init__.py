"""Compare traces: the question, its computation, tables and figure."""
