"""Sources in object stores: archives and git directories that workers fetch themselves, through fsspec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ncs.errors import MissingExtra, SourceError
from ncs.scale.dask.parts import Part
from ncs.sources.repositories import archive_suffix

LIST = ".txt"


def is_archive(root: str) -> bool:
    """By its name."""
    return bool(archive_suffix(root.rpartition("/")[2]))


def listed(part: Part) -> list[Part]:
    """What an address names: the lines of a list, the archives and git directories of a folder, or itself."""
    files, path = _opened(part.root)
    protocol = part.root.partition("://")[0]
    try:
        if path.endswith(LIST):
            lines = files.cat_file(path).decode().splitlines()
            kept = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
            return [Part(line, (*part.number, at), archive=is_archive(line)) for at, line in enumerate(kept)]
        if files.isfile(path) or _is_git(files, path):
            return []
        found = [entry for entry in files.ls(path, detail=True) if _is_source(files, entry)]
        names = sorted(f"{protocol}://{entry['name']}" for entry in found)
        return [Part(name, (*part.number, at), archive=is_archive(name)) for at, name in enumerate(names)]
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot list {part.root} ({error}); does the worker have the rights to read it?") from error


def fetch(address: str, room: Path) -> Path:
    """A copy of an archive, or of a git directory, in a folder of the worker."""
    files, path = _opened(address)
    here = room / Path(path).name
    try:
        files.get(path, str(here), recursive=bool(files.isdir(path)))
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot fetch {address} ({error}); does the worker have the rights to read it?") from error
    return here


def _is_source(files: Any, entry: dict[str, Any]) -> bool:
    if entry["type"] == "directory":
        return _is_git(files, entry["name"])
    return bool(archive_suffix(Path(entry["name"]).name))


def _is_git(files: Any, path: str) -> bool:
    return bool(files.isdir(path)) and all(files.exists(f"{path}/{name}") for name in ("HEAD", "objects"))


def _opened(address: str) -> tuple[Any, str]:
    """The file system behind an address and the path in it."""
    try:
        import fsspec
    except ImportError:
        raise MissingExtra("addresses need the extra `cluster`: pip install 'neural-code-search[cluster]'") from None
    try:
        files, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise SourceError(f"cannot open {address}: {str(error).splitlines()[0]}") from error
    return files, str(path)
