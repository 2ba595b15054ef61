"""The command line: the group of all commands, and the options, jobs, output and progress that commands share."""
