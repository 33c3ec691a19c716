"""Changes of snapshot.json, signed by this user again, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ncs.storage.snapshot import SNAPSHOT, Description
from ncs.storage.trust import sign


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit the description of an index as if it had been written so."""
    content = json.loads((folder / SNAPSHOT).read_bytes())
    edit(content)
    (folder / SNAPSHOT).write_text(sign(Description.from_json(json.dumps(content))).to_json())
