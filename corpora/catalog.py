"""The addresses of each corpus's published files: a list, Hugging Face's listings, GitHub archives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from corpora import coir, nlp2api, repo_search
from corpora.download import Client, Downloads, RemoteFile, fetch_all, filter_zip
from corpora.jsonl import read_lines
from ncs.errors import BadInput

CATALOG = Path(__file__).with_suffix(".txt")
HUB = "https://huggingface.co"
FETCHED: Mapping[str, str] = {
    "ncs287": "Neural Code Search Evaluation Dataset: questions, links, score sheet, search corpus (CC BY-NC)",
    "stackoverflow": "Stack Overflow's posts, some 20 GB (CC BY-SA)",
    "cosqa": "CoSQA: web queries, Python functions (MIT)",
    "nlp2api": "NLP2API: how-to questions, Java programs",
    "codesearchnet": "CodeSearchNet: functions of six languages, the Challenge's annotations",
    "coir": "CoIR's ten tasks, from Hugging Face",
    "repo_search": f"the pinned repositories that {repo_search.ROWS} names, from GitHub",
}
"""Corpora that `fetch` can fetch, with a line about each."""


def read_catalog(path: Path = CATALOG) -> dict[str, list[RemoteFile]]:
    """Corpus -> files: `corpus path bytes checksum address` per line, `-` for what is not known.

    Raises BadInput, naming the line, for anything else.
    """
    catalog: dict[str, list[RemoteFile]] = {}
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split()
        if not columns or columns[0].startswith("#"):
            continue
        if len(columns) != 5 or not (columns[2] == "-" or columns[2].isdigit()):
            raise BadInput(f"{path}:{number}: not 'corpus path bytes checksum address'; correct that line")
        name, file, size, checksum, url = columns
        remote = RemoteFile(url, file, None if size == "-" else int(size), "" if checksum == "-" else checksum)
        catalog.setdefault(name, []).append(remote)
    return catalog


def fetch_corpus(
    name: str,
    data: Path,
    *,
    only: str = "*",
    catalog: Path = CATALOG,
    hub: str = HUB,
    github: str = repo_search.GITHUB,
    **options: Any,
) -> Downloads:
    """Fetch a corpus's files into the data folder: `data`/<name>, where its module reads them.

    only: a pattern of file names; of CoIR, of data sets. catalog, hub, github: another list of addresses, other hosts.
    options: of `fetch_all`. Raises BadInput for an unknown name or a pattern that fits nothing.
    """
    folder = data / name
    if name == "coir":
        return fetch_all(_of_hub(folder, only, hub.rstrip("/")), folder, **options)
    if name == "repo_search":
        files, folder = repo_search.archives(data, github.rstrip("/")), data / repo_search.REPOSITORIES
    elif not (files := read_catalog(catalog).get(name, [])):
        raise BadInput(f"no corpus to fetch is named {name!r}; choose from {', '.join(FETCHED)}")
    if not (files := [file for file in files if fnmatchcase(file.path, only)]):
        raise BadInput(f"no file of {name} matches {only!r}; choose another --only")
    then = partial(filter_zip, accepts=nlp2api.is_read) if name == "nlp2api" else None
    return fetch_all(files, folder, then=then, **options)


def _of_hub(folder: Path, only: str, hub: str) -> list[RemoteFile]:
    """The Parquet files of CoIR's data sets, with the hashes that the Hub lists."""
    names = [name for name in coir.DATASETS if fnmatchcase(name, only)]
    if not names:
        raise BadInput(f"CoIR has no data set {only!r}; choose from {', '.join(coir.DATASETS)}")
    parts = [f"{name}-{part}" for name in names for part in ("queries-corpus", "qrels")]
    with Client() as client:
        return [file for part in parts for file in _list_dataset(part, folder, hub, client)]


def _list_dataset(name: str, folder: Path, hub: str, client: Client) -> list[RemoteFile]:
    """The Parquet files of a data set of CoIR on Hugging Face; the listing is kept in `.listings`."""
    dataset, listing = f"{coir.OWNER}/{name}", f".listings/{name}.json"
    client.fetch(RemoteFile(f"{hub}/api/datasets/{dataset}/tree/main?recursive=true", listing), folder)
    try:
        files = [entry for entry in json.loads((folder / listing).read_bytes()) if entry["path"].endswith(".parquet")]
        return [
            RemoteFile(
                url=f"{hub}/datasets/{dataset}/resolve/main/{quote(entry['path'])}",
                path=f"{name}/{entry['path']}",
                size=entry["size"],
                checksum=f"sha256:{entry['lfs']['oid']}" if "lfs" in entry else f"git:{entry['oid']}",
            )
            for entry in files
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{hub} does not list the files of {dataset} ({error!r}); try again later") from None
