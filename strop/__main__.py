"""Entry point of `python -m strop`, the command `strop`."""

from strop.cli import main

if __name__ == "__main__":
    main()
