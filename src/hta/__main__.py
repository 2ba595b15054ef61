"""`python -m hta` is the command `hta`; worker processes may import this module without running it."""

from hta.cli.app import main

if __name__ == "__main__":
    main()
