"""The command line: the group of all commands, and what they share: options, jobs, output and progress."""
