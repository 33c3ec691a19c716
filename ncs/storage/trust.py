"""Whether this user made an index here: snapshots are signed with a key of the user's that lies outside every project.

What a signed index names is used: its roots, rankers, addresses. Any other index is only searched, by built-in rankers.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.errors import IndexFolderError, NcsError
from ncs.files import create_file, open_regular, sync
from ncs.messages import UNUSABLE

if TYPE_CHECKING:
    from ncs.storage.snapshot import Description

KEY_BYTES = 32
UNSIGNED = "it has no signature: an older ncs made it, or your key could not be kept"
MODELS = ("endpoint", "transformers")
"""Rankers that open external models when they search."""


def distrust(folder: Path, description: Description) -> str:
    """Why an index is not trusted; "" if this user signed it, and it was not moved, or names only paths in the folder
    that holds it."""
    signature = (description.signature or "").encode("utf-8", "replace")
    try:
        if not all(is_own(path.stat()) for path in (folder, folder / "snapshot.json")):
            return "another user owns it"
        valid = hmac.compare_digest(_signature(description, _read_key()), signature)
    except (OSError, RecursionError):  # no key, for one
        valid = False
    if not valid:
        return "another user or machine made it, or it was altered" if signature else UNSIGNED
    roots = roots_of(folder, description)
    if any(root.is_absolute() and root.resolve() != root for root in roots):
        return "a source of it is a link now"
    if description.folder == str(folder.resolve()):
        return ""
    config: Mapping[str, Any] = description.config
    names = [text.partition(":")[0] for text in config.get("rankers", ())]
    if any(name in MODELS for name in names) or config.get("fasttext", {}).get("pretrained"):
        return "it was moved, and uses a model from elsewhere"
    inside = all(root.is_relative_to(folder.resolve().parent) for root in roots)
    return "" if inside else "it was moved, and has sources elsewhere"


def check_trust(folder: Path, description: Description) -> None:
    """Raise NcsError for an index that may only be searched."""
    if reason := distrust(folder, description):
        raise NcsError(f"{folder} can only be searched, as {untrusted(reason, folder)}")


def untrusted(reason: str, folder: Path | str = "FOLDER") -> str:
    """What people read about an index that is not trusted, and the remedy."""
    return UNUSABLE.format(what=f"the index is not trusted ({reason})", folder=folder)


def roots_of(folder: Path, description: Description) -> tuple[Path, ...]:
    """The absolute paths or addresses of the sources of an index; () for one built from documents."""
    sources, home = description.counts.get("sources"), folder.resolve().parent
    roots = sources["roots"] if isinstance(sources, dict) else ()
    return tuple(Path(root) if "://" in root else home / root for root in roots)


def stored_root(folder: Path, root: Path) -> str:
    """A root as stored in a snapshot: relative to the folder that holds the index if it is inside."""
    root, home = root.resolve(), folder.resolve().parent
    return root.relative_to(home).as_posix() if root.is_relative_to(home) else str(root)


def check_place(index: Path) -> None:
    """Raise IndexFolderError for the `.ncs` of a project that links out of it or belongs to another user."""
    if not index.resolve().is_relative_to(index.parent.resolve()):
        raise IndexFolderError(f"{index} points outside its project; remove that link, or name an index with -i")
    with suppress(FileNotFoundError):
        if not is_own(index.stat()):
            raise IndexFolderError(f"{index} belongs to another user; to search it all the same, name it: -i {index}")


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to this user, or to the one who became root with sudo; True on Windows."""
    if os.name == "nt":
        return True
    user, sudo = os.geteuid(), os.environ.get("SUDO_UID", "")
    return status.st_uid == user or (user == 0 and sudo == str(status.st_uid))


def sign(description: Description) -> Description:
    """The description with its signature, or with a note if no key can be stored."""
    try:
        return replace(description, signature=_signature(description, _make_key()).decode())
    except OSError as error:
        note = (
            f"no key can be kept in {key_file()} ({error.strerror or error}), so this index can only be searched;"
            " set XDG_STATE_HOME to a folder where you may write, and build it again"
        )
        return replace(description, notes=(*description.notes, note))


def _signature(description: Description, key: bytes) -> bytes:
    """Of everything else that snapshot.json has."""
    content = json.loads(replace(description, signature=None).to_json())
    return hmac.new(key, json.dumps(content, sort_keys=True).encode(), "sha256").hexdigest().encode()


def key_file() -> Path:
    """Where the key is: in the user's folder for state."""
    name, default = ("LOCALAPPDATA", "~/AppData/Local") if os.name == "nt" else ("XDG_STATE_HOME", "~/.local/state")
    named = Path(os.environ.get(name, ""))  # a relative one does not count, says the XDG specification
    return (named if named.is_absolute() else Path(os.path.expanduser(default))) / "ncs" / "key"  # noqa: PTH111


def _read_key() -> bytes:
    """Raises OSError for a file that is no key of this user's."""
    with open_regular(key_file(), follow=False) as file:
        key, own = file.read(KEY_BYTES + 1), is_own(os.fstat(file.fileno()))
    if not own or len(key) != KEY_BYTES or not key_file().is_absolute():
        raise OSError("it is no key of yours: remove it")
    return key


def _make_key() -> bytes:
    """The key, created if there is none; of several processes one wins."""
    file = key_file()
    with suppress(FileNotFoundError):
        return _read_key()
    if not file.is_absolute():
        raise OSError("there is no home folder")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f"key.{os.urandom(4).hex()}.part")
    try:
        with create_file(part, 0o600) as new:
            new.write(os.urandom(KEY_BYTES))
            new.flush()
            os.fsync(new.fileno())
        try:
            os.link(part, file)  # of several, one wins
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    sync(file.parent)
    return _read_key()
