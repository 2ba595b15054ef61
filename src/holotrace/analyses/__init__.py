"""The analyses, one folder for each question about traces, with its texts, computation, tables and figure."""
