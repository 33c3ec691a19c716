"""Work trees of repositories of a mirror, moved from commit to commit; objects are shared, nothing is fetched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ncs.errors import BadInput

_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Git follows nobody's settings, and no filter or hook is set."""


def find_objects(repository: str, mirror: Path) -> Path:
    """The objects of owner/name in a mirror: `owner+name/repo`, `owner+name` or `owner/name`, bare or not.

    Raises BadInput where there are none.
    """
    name = repository.replace("/", "+")
    for place in (mirror / name / "repo", mirror / name, mirror / repository):
        for objects in (place / "objects", place / ".git" / "objects"):
            if objects.is_dir():
                return objects.resolve()
    raise BadInput(f"there is no git directory {mirror / name}; clone {repository} to it, or leave its rows out")


class WorkTree:
    """A work tree of a repository. It has no branches and tags: from a commit, git sees only what came before."""

    def __init__(self, objects: Path, folder: Path) -> None:
        """objects: of the repository; folder: where the work tree will lie."""
        folder.mkdir(parents=True)
        self.folder = folder
        self._git("init", "-q")
        (folder / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8")
        if (shallow := objects.parent / "shallow").is_file():
            (folder / ".git" / "shallow").write_bytes(shallow.read_bytes())

    def date(self, revision: str) -> int:
        """The seconds since 1970 of a commit; BadInput for one that is not there."""
        try:
            return int(self._git("log", "-1", "--format=%ct", f"{revision}^{{commit}}", "--"))
        except BadInput:
            name = self.folder.name
            raise BadInput(f"{name} has no commit {revision}; fetch it, or leave the rows at it out") from None

    def check_out(self, revision: str) -> list[str]:
        """The files of a commit, and nothing else; returns the errors for those that the mirror does not have (it may
        lack the largest). What is the same at both commits is not written."""
        self._git("read-tree", "-m", revision)
        self._git("update-ref", "--no-deref", "HEAD", revision)
        self._git("clean", "-q", "-ffdx")
        absent = self._run("checkout-index", "-a", "-f", "-q", "-u").stderr.decode("utf-8", "replace").splitlines()
        if wrong := [line for line in absent if not line.startswith("error: unable to read sha1 file of ")]:
            raise BadInput(f"git cannot check out {self.folder.name} ({wrong[0]}); see what is wrong with: git fsck")
        self._run("update-index", "-q", "--refresh")  # a file that is not there is an error of checkout-index
        return absent

    def _git(self, *arguments: str) -> str:
        result = self._run(*arguments)
        if result.returncode:
            message = " ".join(result.stderr.decode("utf-8", "replace").split())
            raise BadInput(f"git {arguments[0]} failed in {self.folder}: {message}; see what is wrong with: git fsck")
        return result.stdout.decode("utf-8", "replace")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ENVIRONMENT
        command = ["git", "-C", str(self.folder), *arguments]
        try:
            return subprocess.run(command, env=environment, capture_output=True, check=False)
        except OSError as error:
            raise BadInput(f"cannot run git ({error.strerror}); install it") from None
