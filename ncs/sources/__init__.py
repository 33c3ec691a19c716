"""Reads source files from folders, git repositories (bare ones too) and archives."""

from ncs.sources.files import Origin, SourceFile
from ncs.sources.filters import Limits, Readable, Scope, Skipped
from ncs.sources.roots import count, repository_names, walk

__all__ = ["Limits", "Origin", "Scope", "Skipped", "SourceFile", "Readable", "count", "repository_names", "walk"]
