"""The command `holotrace`; each command has its own file."""
