"""GPU summary: the question, its computation, tables and figure."""
