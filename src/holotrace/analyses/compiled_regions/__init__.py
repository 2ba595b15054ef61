"""Compiled regions: the question, how it is answered, and the tables and figure that show the answer."""
