"""`python -m ncs.cli`: the `ncs` command."""

from ncs.cli.main import main

if __name__ == "__main__":
    main()
