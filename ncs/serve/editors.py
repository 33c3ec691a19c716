"""Opening a hit in the user's editor, at its line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

from ncs.console import one_line
from ncs.errors import BadInput
from ncs.search.locate_source import SourceLocator, line_offset

_EDITORS = {
    "+{line} {path}": (
        "vim nvim vi view gvim mvim neovide nano pico emacs emacsclient kak micro joe jed ne mg gedit jmacs"
    ),
    "-g {path}:{line}": "code code-insiders code-oss codium vscodium cursor windsurf positron",
    "{path}:{line}": "subl sublime_text zed zeditor hx helix atom lapce pulsar",
    "--line {line} {path}": (
        "idea pycharm webstorm phpstorm clion goland rider rubymine rustrover studio charm fleet xed"
    ),
    "-l {line} {path}": "mate kate kwrite",
}
"""Arguments, and the editors that take them."""


def editor_command(editor: str, path: PurePath, line: int, *, windows: bool = os.name == "nt") -> list[str]:
    """The command that opens a file at a line; for an unknown editor, without the line.

    >>> editor_command("code --wait", Path("a.py"), 7)
    ['code', '--wait', '-g', 'a.py:7']
    >>> editor_command("/usr/bin/vim", Path("a.py"), 7)
    ['/usr/bin/vim', '+7', 'a.py']
    """
    try:
        command = shlex.split(editor.replace("\\", "\\\\") if windows else editor)
    except ValueError:
        raise BadInput(f"cannot parse the editor {editor!r}; set another in VISUAL or EDITOR") from None
    name = PureWindowsPath(command[0]).name.lower().removesuffix(".exe").removesuffix(".cmd").removesuffix(".sh")
    arguments = next((form for form, names in _EDITORS.items() if name in names.split()), "{path}")
    return [*command, *(argument.format(path=path, line=line) for argument in arguments.split())]


def find_editor(environment: Mapping[str, str]) -> str:
    """$VISUAL, else $EDITOR; BadInput where neither is set."""
    for name in ("VISUAL", "EDITOR"):
        if editor := environment.get(name, "").strip():
            return editor
    raise BadInput("no editor is set; name yours in VISUAL or EDITOR")


def file_to_open(hit: Mapping[str, Any], locator: SourceLocator) -> tuple[Path, int, str | None]:
    """File and line of a hit, and a note: a copy of the indexed code where there is no file.

    Raises BadInput where the index has no code either.
    """
    name = f"{hit['repository']}/{hit['path']}"
    if source := locator.locate(hit):
        changed = None if source.unchanged else f"{name} has changed since it was indexed; run ncs update"
        return source.path, source.line + line_offset(hit), changed
    if not hit["code"]:
        raise BadInput(f"{name} is not on this machine, and the index has no code; build it without --no-store-code")
    path = Path(tempfile.mkdtemp(prefix="ncs-")) / one_line(PurePath(hit["path"]).name)
    path.write_text(hit["code"], encoding="utf-8", errors="replace")
    path.chmod(0o444)
    note = f"{name} is not a file here (moved, or in an archive or bare repository); opening the indexed code"
    return path, 1 + line_offset(hit), note


def open_in_editor(hit: Mapping[str, Any], locator: SourceLocator, environment: Mapping[str, str]) -> str | None:
    """Open a hit and wait for the editor; a note. Raises BadInput where there is no editor or it fails."""
    editor = find_editor(environment)
    path, line, note = file_to_open(hit, locator)
    command = editor_command(editor, path, line)
    try:
        status = subprocess.call([shutil.which(command[0]) or command[0], *command[1:]])  # code.cmd, on Windows
    except OSError as error:
        raise BadInput(f"cannot start {command[0]}: {error.strerror}; set another in VISUAL or EDITOR") from None
    if status:
        raise BadInput(f"{command[0]} exited with status {status}; the file is {path}, line {line}")
    return note
