"""Changes of snapshot.json for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ncs.storage.snapshot import SNAPSHOT, Description
from ncs.storage.trust import sign


def alter(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit the description of an index as a stranger can, who has no key."""
    content = json.loads((folder / SNAPSHOT).read_bytes())
    edit(content)
    (folder / SNAPSHOT).write_text(json.dumps(content))


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit the description of an index as if it had been written so: signed by this user again."""
    alter(folder, edit)
    (folder / SNAPSHOT).write_text(sign(Description.from_json((folder / SNAPSHOT).read_bytes())).to_json())
