"""`python -m strop` is the command `strop`."""

from strop.cli import main

if __name__ == "__main__":
    main()
