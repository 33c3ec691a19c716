"""An index in Milvus against itself in its folder: are the first ten hits the same, what does a question take.

    bin/benchmark milvus INDEX [--store milvus://HOST:19530/NAME] [--questions 200] [--kill-after N]
        [--update 40 200 800] [--json FILE]

Questions are made of the index's own documents (ncs.learn.synthetic_queries). Without --store Milvus Lite is started
for it.
--kill-after: the first publication is killed when so many documents are there; the next one goes on with it.
--update: after so many files of the index's sources were edited at random it is updated with its store, for each number
from the index as it is; the index is linked, not changed, and the sources get back as they were.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.bench_update import linked
from evaluation.lite_server import lite
from evaluation.machine import commit, machine, peak_memory
from evaluation.milvus_updates import same_candidates, updates
from evaluation.milvus_updates import told as update_told
from ncs.exit_status import ending
from ncs.index import Index
from ncs.learn.synthetic_queries import sample
from ncs.scale.milvus.collection import collections, counted
from ncs.scale.milvus.index import MilvusIndex
from ncs.scale.milvus.publish import Published, publish
from ncs.scale.milvus.target import Target, connected
from ncs.storage.document_facts import Structure

K = 10


@ending("milvus")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the share of equal hits and the times; --json also writes them."""
    parser = argparse.ArgumentParser(prog="benchmark milvus", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--store")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--kill-after", type=int, default=0)
    parser.add_argument("--update", type=int, nargs="+", default=[], metavar="N")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--publish-only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.publish_only:
        publish(args.index, Target.of(args.store))
        return 0
    with ExitStack() as open_meanwhile:
        room = Path(open_meanwhile.enter_context(tempfile.TemporaryDirectory()))
        folder = open_meanwhile.enter_context(linked(args.index))
        target = Target.of(args.store or open_meanwhile.enter_context(lite(room)) + "/bench")
        result: dict[str, Any] = {
            "commit": commit(),
            "machine": machine(),
            "store": "server" if args.store else "Milvus Lite as a server",
        }
        if args.kill_after:
            result["killed"] = _killed(folder, target, args.kill_after)
        start = time.perf_counter()
        done = publish(folder, target)
        result["publication"] = _published(done, time.perf_counter() - start)
        result |= _compared(folder, target, args.questions)
        if args.update:
            result["updates"] = updates(folder, target, args.update, partial(_compared, folder, target, args.questions))
        result["load"] = os.getloadavg()[0]
        result["peak_memory_bytes"] = peak_memory()
    _tell(result)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def _published(done: Published, seconds: float) -> dict[str, Any]:
    return {"written": done.written, "there": done.there, "seconds": round(seconds, 1)}


def _killed(index: Path, target: Target, after: int) -> dict[str, Any]:
    """A publication in a process of its own, killed; Milvus must be a server, as a file has one reader."""
    command = [sys.executable, "-m", "evaluation.bench_milvus", str(index), "--store", target.shown, "--publish-only"]
    process = subprocess.Popen(command)
    with connected(target) as client:
        while process.poll() is None and _count(client, target) < after:
            time.sleep(0.5)
        process.kill()
        process.wait()
        return {"documents": _count(client, target), "ended_by": process.returncode}


def _count(client: Any, target: Target) -> int:
    """Documents in the one collection that there is."""
    names = collections(client, target.alias)
    if not names:
        return 0
    client.load_collection(names[0])
    return counted(client, names[0])


def _compared(folder: Path, target: Target, wanted: int) -> dict[str, Any]:
    with Index.load(folder) as ours, MilvusIndex.open(folder, target) as theirs:
        questions = [each.text for each in sample(ours.words(), ours.store, Structure.load(ours.data))]
        drawn = np.random.default_rng(0).permutation(len(questions))[:wanted].tolist()
        for index in (theirs, ours):
            index.search("warm up")
        equal = hits = same_order = 0
        milliseconds: dict[str, list[float]] = {"folder": [], "milvus": []}
        for at in drawn:
            found = {}
            for name, index in (("folder", ours), ("milvus", theirs)):
                start = time.perf_counter()
                found[name] = [(hit.document.id, hit.score) for hit in index.search(questions[at], K)]
                milliseconds[name].append(1000 * (time.perf_counter() - start))
            expected = {id for id, _ in found["folder"]}
            equal += len(expected & {id for id, _ in found["milvus"]})
            hits += len(expected)
            same_order += found["folder"] == found["milvus"]
        told = {
            "documents": len(ours),
            "asked": len(drawn),
            "hits": hits,
            "equal_hits": equal,
            "same_order_and_scores": same_order,
            "p50_ms": {name: round(statistics.median(each), 1) for name, each in milliseconds.items()},
        }
        return {"questions": told, "candidates": same_candidates(ours, theirs, [questions[at] for at in drawn])}


def _tell(result: dict[str, Any]) -> None:
    asked, done = result["questions"], result["publication"]
    share = asked["equal_hits"] / asked["hits"]
    lines = [
        f"{asked['documents']:,} documents: {done['written']:,} sent in {done['seconds']} s,"
        f" {done['there']:,} were there",
        f"first {K} of {asked['asked']} questions: {share:.2%} of {asked['hits']:,} hits equal,"
        f" {asked['same_order_and_scores']} rankings the same to the last bit",
        f"p50: folder {asked['p50_ms']['folder']} ms, Milvus {asked['p50_ms']['milvus']} ms",
    ]
    if "killed" in result:
        lines.append(f"a publication killed at {result['killed']['documents']:,} documents was gone on with")
    lines += [
        update_told(made, done["seconds"] * asked["documents"] / max(1, done["written"]))
        for made in result.get("updates", ())
    ]
    print("\n".join(lines))  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
