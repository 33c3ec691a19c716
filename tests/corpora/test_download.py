"""Downloads from a server on loopback: retried, resumed, checked and recorded."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora.download import RECORD, Client, NotFetched, RemoteFile, fetch_all, place, read_record
from ncs.errors import BadInput, SourceError
from tests.waiting import LONG
from tests.webserver import Answer, Site, etag, serving

BODY = random.Random(7).randbytes(300_000)
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(tries=3) as client:
        client.sleep = lambda seconds: None
        yield client


@pytest.fixture
def waits(client: Client) -> list[float]:
    """How long the client would have slept."""
    waits: list[float] = []
    client.sleep = waits.append
    return waits


@pytest.fixture
def once() -> Iterator[Client]:
    """A client of a single try."""
    with Client(tries=1) as client:
        yield client


def remote(url: str, path: str = "in/file.bin", size: int | None = None, checksum: str = "") -> RemoteFile:
    return RemoteFile(url, path, size, checksum)


def listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_file_arrives_whole_and_alone_with_its_hash(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY)
    assert client.fetch(remote(url, size=len(BODY), checksum=f"sha256:{SHA256}"), tmp_path) == SHA256
    assert (tmp_path / "in/file.bin").read_bytes() == BODY
    assert listed(tmp_path) == ["in/file.bin"]
    assert site.asked[0][1]["user-agent"].startswith("neural-code-search/")


def test_the_name_that_git_gives_a_file_is_a_checksum_too(site: Site, tmp_path: Path, client: Client) -> None:
    (tmp_path / "there").write_bytes(BODY)
    name = subprocess.run(["git", "hash-object", str(tmp_path / "there")], capture_output=True, text=True, check=True)
    url = site.put("/a", BODY)
    client.fetch(remote(url, "x", checksum=f"git:{name.stdout.strip()}"), tmp_path)
    with pytest.raises(NotFetched, match="not what was expected"):
        client.fetch(remote(url, "y", checksum=f"git:{'0' * 40}"), tmp_path)


def test_a_cut_connection_is_resumed_where_it_broke(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000), Answer(cut=50_000))
    assert client.fetch(remote(url), tmp_path) == SHA256
    assert site.ranges("/a") == [None, "bytes=100000-", "bytes=150000-"]
    assert site.condition("/a", 1) == etag(BODY)


def test_a_later_call_resumes_where_an_earlier_one_ended(site: Site, tmp_path: Path, once: Client) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000))
    with pytest.raises(NotFetched, match="no connection") as caught:
        once.fetch(remote(url), tmp_path)
    assert not caught.value.final
    assert listed(tmp_path) == ["in/file.bin.part", "in/file.bin.part.json"]
    assert once.fetch(remote(url), tmp_path) == SHA256
    assert site.ranges("/a") == [None, "bytes=100000-"]
    assert listed(tmp_path) == ["in/file.bin"]


def test_a_file_that_changed_between_is_fetched_from_its_beginning(site: Site, tmp_path: Path, once: Client) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000))
    with pytest.raises(NotFetched):
        once.fetch(remote(url), tmp_path)
    site.put("/a", BODY[::-1])
    once.fetch(remote(url), tmp_path)
    assert (tmp_path / "in/file.bin").read_bytes() == BODY[::-1]


def test_without_a_strong_etag_only_a_checksum_allows_to_resume(site: Site, tmp_path: Path, client: Client) -> None:
    site.etags = False
    weak = {"ETag": 'W/"1"'}
    url = site.put("/a", BODY, Answer(headers=weak, cut=100_000), Answer(headers=weak))
    assert client.fetch(remote(url, "x"), tmp_path) == SHA256
    url = site.put("/b", BODY, Answer(cut=100_000))
    assert client.fetch(remote(url, "y", checksum=f"sha256:{SHA256}"), tmp_path) == SHA256
    assert (site.ranges("/a"), site.ranges("/b")) == ([None, None], [None, "bytes=100000-"])
    url = site.put("/c", BODY, Answer(cut=100_000, body=BODY[::-1]))  # halves of two files
    assert client.fetch(remote(url, "z", checksum=f"sha256:{SHA256}"), tmp_path) == SHA256
    assert site.ranges("/c") == [None, "bytes=100000-", None]


def test_a_part_that_is_whole_is_used_and_one_that_is_too_long_thrown_away(
    site: Site, tmp_path: Path, once: Client, client: Client
) -> None:
    for name, rest, ranges in (("a", BODY[100_000:], [None, "bytes=300000-"]), ("b", BODY, None)):
        url = site.put(f"/{name}", BODY, Answer(cut=100_000))
        with pytest.raises(NotFetched):
            once.fetch(remote(url, name), tmp_path)
        with (tmp_path / f"{name}.part").open("ab") as part:
            part.write(rest)
        assert client.fetch(remote(url, name), tmp_path) == SHA256
        assert ranges in (None, site.ranges(f"/{name}"))


def test_chunked_answers_without_a_length_are_read_to_their_end(site: Site, tmp_path: Path, client: Client) -> None:
    site.lengths = False
    url = site.put("/a", BODY, Answer(cut=1000))
    assert client.fetch(remote(url), tmp_path) == SHA256
    assert len(site.asked) == 2


def test_the_server_is_asked_again_after_the_time_it_named(
    site: Site, tmp_path: Path, client: Client, waits: list[float]
) -> None:
    url = site.put("/a", BODY, Answer(429, {"Retry-After": "7"}), Answer(503))
    client.fetch(remote(url), tmp_path)
    assert len(site.asked) == 3
    assert waits[0] == 7
    assert 2.0 <= waits[1] <= 2.5  # the second failure doubles the wait
    url = site.put("/c", BODY, *[Answer(500)] * 9)
    with pytest.raises(NotFetched, match="500"):
        client.fetch(remote(url, "c"), tmp_path)
    assert len(site.ranges("/c")) == 3
    url = site.put("/b", BODY, Answer(429, {"Retry-After": "3600"}))
    with pytest.raises(NotFetched, match="asks to wait 3600 s") as caught:
        client.fetch(remote(url, "b"), tmp_path)
    assert not caught.value.final


@pytest.mark.parametrize(
    ("size", "checksum", "message"),
    [
        (299_999, "", "300000 bytes instead of at most 299999"),
        (300_001, "", "not what was expected"),
        (None, "sha256:" + "0" * 64, "not what was expected"),
    ],
)
def test_another_file_than_expected_is_refused_and_leaves_nothing(
    site: Site, tmp_path: Path, client: Client, size: int | None, checksum: str, message: str
) -> None:
    with pytest.raises(NotFetched, match=message) as caught:
        client.fetch(remote(site.put("/a", BODY), size=size, checksum=checksum), tmp_path)
    assert caught.value.final
    assert listed(tmp_path) == []
    with pytest.raises(NotFetched, match=r"/none: 404 Not Found") as caught:
        client.fetch(remote(f"{site.url}/none"), tmp_path)
    assert caught.value.final
    assert len(site.asked) == 2


@pytest.mark.parametrize("lengths", [True, False])
def test_nothing_over_the_limit_or_larger_than_the_disk_is_kept(site: Site, tmp_path: Path, lengths: bool) -> None:
    site.lengths = lengths
    with Client(limit=100_000) as client, pytest.raises(NotFetched, match="100000"):
        client.fetch(remote(site.put("/a", BODY)), tmp_path)
    assert not (tmp_path / "in/file.bin.part").exists()
    url = site.put("/b", BODY, Answer(headers={"Content-Length": str(1 << 60)}))
    with (
        Client(limit=1 << 62) as client,
        pytest.raises(NotFetched, match=r"needs 1152921504606846976 bytes, \d+ are free"),
    ):
        client.fetch(remote(url), tmp_path)
    assert listed(tmp_path) == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "127.0.0.1/a", "http:///a"])
def test_only_web_addresses_are_fetched(tmp_path: Path, client: Client, url: str) -> None:
    with pytest.raises(BadInput, match="is not a URL"):
        client.fetch(remote(url), tmp_path)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\\b", "C:/x", "", ".", "a\0b"])
def test_no_file_is_put_outside_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadInput, match="leads out of its folder"):
        place(tmp_path, path)


SLOW = """
import sys
from pathlib import Path
from corpora.download import RemoteFile, fetch_all
url, folder = sys.argv[1], Path(sys.argv[2])
fetch_all([RemoteFile(f"{url}/{n}", f"{n}") for n in range(4)] + [RemoteFile(f"{url}/slow", "slow")], folder, jobs=2)
"""


def test_a_killed_process_has_lost_nothing_that_had_arrived(site: Site, tmp_path: Path) -> None:
    many(site, 4)
    stopped = threading.Event()
    site.put("/slow", BODY, Answer(cut=100_000, held=stopped))
    process = subprocess.Popen([sys.executable, "-c", SLOW, site.url, str(tmp_path)], stderr=subprocess.DEVNULL)
    part = tmp_path / "slow.part"
    while process.poll() is None and (not part.exists() or part.stat().st_size < 100_000 - (1 << 16)):
        time.sleep(0.01)
    process.kill()
    stopped.set()
    assert process.wait(LONG) != 0
    had, known = part.stat().st_size, read_record(tmp_path / RECORD)
    downloads = fetch_all([RemoteFile(f"{site.url}/slow", "slow"), RemoteFile(f"{site.url}/0", "0")], tmp_path)
    assert (tmp_path / "slow").read_bytes() == BODY
    assert (downloads.present, downloads.failed) == (int("0" in known), {})
    assert site.ranges("/slow") == [None, f"bytes={had}-"]


def many(site: Site, count: int) -> list[RemoteFile]:
    return [RemoteFile(site.put(f"/{n}", b"%d" % n * 100), f"{n % 3}/{n}.txt") for n in range(count)]


def test_many_files_arrive_once_and_what_is_damaged_lost_or_half_recorded_again(site: Site, tmp_path: Path) -> None:
    files = many(site, 20)
    first = fetch_all(files, tmp_path, jobs=4)
    assert (first.arrived, first.present, first.failed) == (20, 0, {})
    assert all((tmp_path / file.path).read_bytes() == site.files[f"/{n}"] for n, file in enumerate(files))
    second = fetch_all(files, tmp_path, jobs=4)
    assert (second.arrived, second.present, len(site.asked)) == (0, 20, 20)
    record = tmp_path / RECORD
    record.write_bytes(record.read_bytes()[:-20])
    assert fetch_all(files, tmp_path).arrived == 1
    (tmp_path / files[0].path).write_bytes(b"short")
    (tmp_path / files[1].path).unlink()
    third = fetch_all(files, tmp_path)
    assert (third.arrived, third.present) == (2, 18)
    assert fetch_all(files, tmp_path).present == 20


def test_the_record_names_what_arrived_and_what_failed(site: Site, tmp_path: Path) -> None:
    files = [*many(site, 2), RemoteFile(f"{site.url}/gone", "gone.txt")]
    assert fetch_all(files, tmp_path).failed == {"gone.txt": f"{site.url}/gone: 404 Not Found"}
    rows = {row["path"]: row for row in map(json.loads, (tmp_path / RECORD).read_text().splitlines())}
    digest = hashlib.sha256(b"1" * 100).hexdigest()
    assert rows["1/1.txt"] == {
        "path": "1/1.txt", "url": f"{site.url}/1", "status": "done", "bytes": 100, "sha256": digest
    }  # fmt: skip
    assert (rows["gone.txt"]["status"], rows["gone.txt"]["final"]) == ("failed", True)
    asked = len(site.asked)
    assert fetch_all(files, tmp_path).failed.keys() == {"gone.txt"}
    assert len(site.asked) == asked  # what is gone is not asked for again
    site.put("/gone", b"back")
    assert fetch_all(files, tmp_path, again=True).arrived == 1


def test_a_dead_network_or_a_host_that_wants_to_be_left_alone_ends_the_call(site: Site, tmp_path: Path) -> None:
    with serving() as closed:
        url = closed.url
    files = [RemoteFile(f"{url}/{n}", f"{n}") for n in range(500)]
    with pytest.raises(SourceError, match=r"6 files in a row could not be fetched .*no connection.*0 arrived before"):
        fetch_all(files, tmp_path / "dead", jobs=2, tries=1)
    assert len(read_record(tmp_path / "dead" / RECORD)) == 6
    busy = [Answer(429, {"Retry-After": "900"})] * 9
    files = many(site, 2) + [RemoteFile(site.put(f"/{n}", b"x", *busy), f"{n}") for n in range(2, 300)]
    with pytest.raises(SourceError, match=r"the server asks to wait 900 s; try again then\); 2 arrived before"):
        fetch_all(files, tmp_path / "busy", jobs=1)
    assert len(site.asked) == 3


def test_two_files_cannot_go_to_one_place_and_a_refused_file_is_recorded_as_failed(site: Site, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="two files have the path 'x'"):
        fetch_all([RemoteFile("http://127.0.0.1/a", "x"), RemoteFile("http://127.0.0.1/b", "x")], tmp_path)

    def refuse(path: Path) -> None:
        raise NotFetched(f"{path.name} is no archive", final=True)

    assert fetch_all(many(site, 1), tmp_path, then=refuse).failed == {"0/0.txt": "0.txt is no archive"}
