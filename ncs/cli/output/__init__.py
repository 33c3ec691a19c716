"""What the commands show: hits, tables and summaries."""

from __future__ import annotations

from ncs.cli.output.hits import FORMATS, choose_format, show
from ncs.cli.output.tables import say_built, say_updated, show_findings, show_info
from ncs.console import count, is_fancy, say, show_json, show_table, tracker

__all__ = ["FORMATS", "choose_format", "count", "is_fancy", "say", "say_built", "say_updated", "show"]
__all__ += ["show_findings", "show_info", "show_json", "show_table", "tracker"]
