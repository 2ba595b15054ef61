"""The analyses: each question about traces has a folder with its texts, computation, tables and figure."""
