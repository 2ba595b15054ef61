"""The server behind `holotrace serve`: waitress behind a guard."""
