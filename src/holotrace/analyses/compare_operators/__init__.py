"""Compare operators: the question, its computation, tables and figure."""
