"""`python -m hta` is the command `hta`."""

from hta.cli.app import main

main()
