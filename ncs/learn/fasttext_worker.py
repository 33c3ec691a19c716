"""The process that runs fastText, so that its memory goes back and its crashes stay its own.

It works in the folder it is started in: reads TEXT, FIRST, WORDS and JOB, prints percents, writes VECTORS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

TEXT, FIRST, WORDS, JOB, VECTORS = "text.txt", "first.vec", "words.txt", "job.json", "vectors.npy"
DIVERGED = 3  # exit status: NaN


def main() -> int:
    """Learn, write the vectors of WORDS in their order; gives the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # fastText would not let Python's handler run
    import fasttext
    import numpy as np

    job = json.loads(Path(JOB).read_text())
    threading.Thread(target=_report, args=(job["epoch"] / job["thread"],), daemon=True).start()
    try:
        model = fasttext.train_unsupervised(
            TEXT, model="skipgram", minCount=1, verbose=0, pretrainedVectors=FIRST, **job
        )
    except RuntimeError as error:
        if "NaN" in str(error):
            return DIVERGED
        raise
    words = Path(WORDS).read_text(encoding="utf-8").split("\n")[:-1]
    vectors = np.zeros((len(words), job["dim"]), np.float32)
    for row, word in enumerate(words):
        vectors[row] = model.get_word_vector(word)
    if not np.isfinite(vectors).all():
        return DIVERGED
    np.save(VECTORS, vectors)
    print(100, flush=True)  # noqa: T201
    return 0


def _report(epochs: float) -> None:
    """Print the percents done, seen from where fastText's open file stands (with one thread it tells nothing).

    The first time through the file is the dictionary's. Ends the process when its parent has ended.
    """
    parent, text = os.getppid(), Path(TEXT).stat()
    passes, last, told = 0, 0, 0
    while os.getppid() == parent:
        time.sleep(0.05)
        at = _position(text)
        if at is None:
            continue
        passes, last = passes + (at < last), at
        percent = min(99, int(100 * (passes + at / max(1, text.st_size)) / (epochs + 1)))
        if percent > told:
            told = percent
            print(told, flush=True)  # noqa: T201
    os._exit(1)


def _position(text: os.stat_result) -> int | None:
    """How far the open file has been read; None while it is not open."""
    for descriptor in range(3, 64):
        with suppress(OSError):
            here = os.fstat(descriptor)
            if (here.st_dev, here.st_ino) == (text.st_dev, text.st_ino):
                return os.lseek(descriptor, 0, os.SEEK_CUR)
    return None


if __name__ == "__main__":
    sys.exit(main())
