"""The command `hta`; each command has its own file."""
