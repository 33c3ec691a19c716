"""`python -m ncs.cli`: the `ncs` command."""

from ncs.cli.main import run

run()
