"""The rules of the diagnosis, with one module per kind of cause."""
