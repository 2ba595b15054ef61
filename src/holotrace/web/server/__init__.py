"""The server of `holotrace serve`: waitress, protected by a guard."""
