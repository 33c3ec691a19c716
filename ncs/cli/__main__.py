"""`python -m ncs.cli`: the `ncs` command."""

import sys

from ncs.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
