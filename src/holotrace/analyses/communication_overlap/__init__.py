"""Communication overlap: the question, its computation, tables and figure."""
