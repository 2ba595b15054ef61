"""Run the command `holotrace` as `python -m holotrace`; worker processes can import this module without side effects."""

from holotrace.cli.app import main

if __name__ == "__main__":
    main()
