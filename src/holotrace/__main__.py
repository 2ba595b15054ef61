"""`python -m holotrace` is the command `holotrace`; worker processes may import this module without running it."""

from holotrace.cli.app import main

if __name__ == "__main__":
    main()
