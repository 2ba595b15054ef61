"""The graphs of all ranks joined where ranks wait for each other."""
