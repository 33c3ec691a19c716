"""Real Android source at pinned versions: npm packages, fetched with the user's own npm, checked by their hashes."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from ncs.console import tracker
from ncs.errors import NcsError, SourceError
from ncs.progress import Track, silent

LIST = Path(__file__).with_suffix(".txt")
JOBS = 4
MIN_SHARE = 0.9
"""Least share of the packages for the corpus to be worth searching."""


@dataclass(frozen=True, slots=True)
class Package:
    """One archive as npm knows it; `integrity` is npm's own: sha512 in base64."""

    name: str
    version: str
    integrity: str

    @property
    def spec(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def archive(self) -> str:
        """The file name of `npm pack`.

        >>> Package("@capacitor/app", "6.0.3", "").archive
        'capacitor-app-6.0.3.tgz'
        """
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"

    def is_in(self, folder: Path) -> bool:
        """Whether the folder has the archive, with the pinned hash."""
        try:
            digest = hashlib.sha512((folder / self.archive).read_bytes()).digest()
        except FileNotFoundError:
            return False
        return self.integrity == "sha512-" + base64.b64encode(digest).decode()


def packages() -> tuple[Package, ...]:
    """The pinned list: one `name@version integrity` per line."""
    rows = (re.fullmatch(r"(.+)@(\S+) (\S+)", line) for line in LIST.read_text("utf-8").splitlines())
    return tuple(Package(row[1], row[2], row[3]) for row in rows if row)


def fetch(pinned: Sequence[Package], folder: Path, *, track: Track = silent) -> dict[str, str]:
    """Fetch missing packages into `folder` in parallel; returns those that failed, each with the reason.

    Raises SourceError where npm is not installed, or fewer than `MIN_SHARE` of the packages are there in the end.
    """
    missing = [package for package in pinned if not package.is_in(folder)]
    if not missing:
        return {}
    npm = shutil.which("npm")
    if npm is None:
        raise SourceError("npm is not installed (it comes with Node.js)")
    folder.mkdir(parents=True, exist_ok=True)
    for package in missing:
        (folder / package.archive).unlink(missing_ok=True)  # damaged
    # Beside the folder, not in it: the folder's time changes only with the corpus (bin/demo builds again by it).
    with tempfile.TemporaryDirectory(prefix="npm-", dir=folder.parent) as scratch:
        results = _download(npm, missing, Path(scratch), folder)
        reasons = dict(track(results, "fetching", total=len(missing), unit="packages"))
    failed = {spec: reason for spec, reason in reasons.items() if reason}
    if len(pinned) - len(failed) < len(pinned) * MIN_SHARE:
        spec, reason = next(iter(failed.items()))
        raise SourceError(f"npm could not fetch {len(failed)} of {len(pinned)} packages ({spec}: {reason})")
    return failed


def _download(npm: str, missing: Sequence[Package], scratch: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Each package's spec and the reason of its failure, "" for success."""
    pack = partial(_pack, npm, scratch, folder)
    # The first few get one short try: without a network all of them fail at once.
    first, rest = missing[:JOBS], missing[JOBS:]
    with ThreadPoolExecutor(JOBS) as pool:
        reasons = list(pool.map(partial(pack, tries=1, seconds=60), first))
        later = ("not tried, as the first ones failed" for _ in rest) if all(reasons) else pool.map(pack, rest)
        for package, reason in zip(missing, chain(reasons, later), strict=True):
            yield package.spec, reason


def _pack(npm: str, scratch: Path, folder: Path, package: Package, *, tries: int = 3, seconds: int = 300) -> str:
    command = [npm, "pack", package.spec, "--ignore-scripts", "--loglevel=error", f"--fetch-retries={tries - 1}"]
    try:
        result = subprocess.run(
            command, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {seconds} s"
    if result.returncode:
        code = re.search(r"^npm (?:ERR!|error) code (\S+)", result.stderr, re.MULTILINE)
        return code[1] if code else f"npm ended with {result.returncode}"
    if not package.is_in(scratch):
        return "its hash differs from the pinned one"
    (scratch / package.archive).replace(folder / package.archive)
    return ""


def main(folder: str) -> int:
    """Fetch the pinned list; 0 if enough of it arrived, else 1 and one line with the reason."""
    try:
        failed = fetch(packages(), Path(folder), track=tracker(False))
    except (NcsError, OSError) as error:
        sys.stderr.write(f"no Android corpus: {error}\n")
        return 1
    for spec, reason in failed.items():
        sys.stderr.write(f"not fetched: {spec}: {reason}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
