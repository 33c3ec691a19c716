"""What a person sees: hits, tables and progress. rich is imported here only, and only on a terminal."""

from __future__ import annotations

from ncs.cli.output.console import is_fancy, say, show_json
from ncs.cli.output.hits import FORMATS, choose_format, show
from ncs.cli.output.progress import tracker
from ncs.cli.output.tables import count, say_built, say_updated, show_findings, show_info, show_table

__all__ = ["FORMATS", "choose_format", "count", "is_fancy", "say", "say_built", "say_updated", "show"]
__all__ += ["show_findings", "show_info", "show_json", "show_table", "tracker"]
