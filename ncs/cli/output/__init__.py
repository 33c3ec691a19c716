"""What a person sees: hits, tables and progress. The only package that imports rich, and only on a terminal."""

from __future__ import annotations

from ncs.cli.output.bars import tracker
from ncs.cli.output.findings import show_findings
from ncs.cli.output.formats import FORMATS, Format, chosen, show
from ncs.cli.output.streams import fancy, say, show_json
from ncs.cli.output.tables import show_table
from ncs.cli.output.told import say_built, say_notes, say_updated, show_info

__all__ = ["FORMATS", "Format", "chosen", "fancy", "say", "say_built", "say_notes", "say_updated"]
__all__ += ["show", "show_findings", "show_info", "show_json", "show_table", "tracker"]
