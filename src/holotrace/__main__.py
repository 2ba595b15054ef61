"""Run the command `holotrace` as `python -m holotrace`; importing this module, as workers do, has no effect."""

from holotrace.cli.app import main

if __name__ == "__main__":
    main()
