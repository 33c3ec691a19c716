"""Sending an index to Milvus after a build or update (`--store`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ncs.cli import output

if TYPE_CHECKING:
    from ncs.build.request import BeforeCommit
    from ncs.scale.milvus.publish import Publication


class Publisher:
    """Of an index that is written; without a store it does nothing. before_commit: for Index.build and update."""

    def __init__(self, folder: Path, store: str | None, *, quiet: bool) -> None:
        """Raises BadInput for a wrong address, and MissingExtra."""
        self._quiet = quiet
        self._publication: Publication | None = None
        self.before_commit: BeforeCommit | None = None
        if store:
            from ncs.scale.milvus.publish import Publication
            from ncs.scale.milvus.store import Target

            self._publication = Publication(folder, Target.of(store), output.tracker(quiet))
            self.before_commit = self._publication.before_commit

    def finish(self) -> None:
        """Send what is missing, and say how much that was."""
        if self._publication is None:
            return
        sent, store = self._publication.finish().sent, self._publication.target.text
        if not self._quiet:
            state = f"{output.count(sent, 'document')} sent to {store}" if sent else f"{store} is up to date"
            output.say(f"{state}; search there with: ncs query --store {store}")
