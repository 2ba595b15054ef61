"""CUPTI counters: the question, its computation, tables and figure."""
