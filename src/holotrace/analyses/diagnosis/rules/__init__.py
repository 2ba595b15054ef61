"""The rules of the diagnosis, a module per kind of cause."""
