"""The command line: the commands, and the options, output and progress bars that they share."""
