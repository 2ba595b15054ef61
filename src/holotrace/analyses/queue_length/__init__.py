"""Queue length: the question, its computation, tables and figure."""
