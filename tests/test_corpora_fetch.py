"""Downloads against a server on loopback: resumed, checked, polite, and remembered."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora.client import Client, Manners, NotFetched
from corpora.downloads import RECORD, fetch_all, read_record
from corpora.fetch import Fetched, Wanted, fetch, place
from ncs.errors import BadInput, SourceError
from tests.waiting import LONG
from tests.webserver import Answer, Site, etag, serving

BODY = random.Random(7).randbytes(300_000)
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as site:
        yield site


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def client(waits: list[float]) -> Client:
    return Client(Manners(tries=3, wait=1.0, timeout=LONG, sleep=waits.append))


def wanted(url: str, path: str = "in/file.bin", size: int | None = None, checksum: str = "") -> Wanted:
    return Wanted(url, path, size, checksum)


def listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_file_arrives_whole_and_alone_with_its_hash(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY)
    assert fetch(wanted(url, size=len(BODY), checksum=f"sha256:{SHA256}"), tmp_path, client) == Fetched(300_000, SHA256)
    assert (tmp_path / "in/file.bin").read_bytes() == BODY
    assert listed(tmp_path) == ["in/file.bin"]
    assert site.asked[0][1]["User-Agent"].startswith("neural-code-search/")


def test_the_name_that_git_gives_a_file_is_a_checksum_too(site: Site, tmp_path: Path, client: Client) -> None:
    (tmp_path / "there").write_bytes(BODY)
    name = subprocess.run(["git", "hash-object", str(tmp_path / "there")], capture_output=True, text=True, check=True)
    url = site.put("/a", BODY)
    fetch(wanted(url, "x", checksum=f"git:{name.stdout.strip()}"), tmp_path, client)
    with pytest.raises(NotFetched, match="not what was expected"):
        fetch(wanted(url, "y", checksum=f"git:{'0' * 40}"), tmp_path, client)


def test_a_cut_connection_is_resumed_where_it_broke(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000), Answer(cut=50_000))
    assert fetch(wanted(url), tmp_path, client).sha256 == SHA256
    assert site.ranges("/a") == [None, "bytes=100000-", "bytes=150000-"]
    assert site.asked[1][1]["If-Range"] == etag(BODY)


def test_a_later_process_goes_on_where_an_earlier_one_ended(site: Site, tmp_path: Path) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000))
    with pytest.raises(NotFetched, match="the connection broke") as caught:
        fetch(wanted(url), tmp_path, Client(Manners(tries=1)))
    assert not caught.value.final
    assert listed(tmp_path) == ["in/file.bin.part", "in/file.bin.part.json"]
    assert fetch(wanted(url), tmp_path, Client(Manners(tries=1))).sha256 == SHA256
    assert site.ranges("/a") == [None, "bytes=100000-"]
    assert listed(tmp_path) == ["in/file.bin"]


def test_a_file_that_changed_between_is_fetched_from_its_beginning(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000))
    with pytest.raises(NotFetched):
        fetch(wanted(url), tmp_path, Client(Manners(tries=1)))
    site.put("/a", BODY[::-1])
    fetch(wanted(url), tmp_path, client)
    assert site.ranges("/a") == [None, "bytes=100000-"]
    assert (tmp_path / "in/file.bin").read_bytes() == BODY[::-1]


def test_without_an_etag_nothing_is_resumed_unless_a_checksum_tells(site: Site, tmp_path: Path, client: Client) -> None:
    site.etags = False
    url = site.put("/a", BODY, Answer(cut=100_000))
    assert fetch(wanted(url, "x"), tmp_path, client).sha256 == SHA256
    url = site.put("/b", BODY, Answer(cut=100_000))
    assert fetch(wanted(url, "y", checksum=f"sha256:{SHA256}"), tmp_path, client).sha256 == SHA256
    assert (site.ranges("/a"), site.ranges("/b")) == ([None, None], [None, "bytes=100000-"])


def test_halves_of_two_files_are_noticed_by_the_checksum(site: Site, tmp_path: Path, client: Client) -> None:
    site.etags = False
    url = site.put("/a", BODY, Answer(cut=100_000, body=BODY[::-1]))
    assert fetch(wanted(url, checksum=f"sha256:{SHA256}"), tmp_path, client).sha256 == SHA256
    assert site.ranges("/a") == [None, "bytes=100000-", None]


def test_a_weak_etag_is_no_reason_to_resume(site: Site, tmp_path: Path, client: Client) -> None:
    site.etags = False
    url = site.put("/a", BODY, Answer(cut=9, headers={"ETag": 'W/"1"'}), Answer(headers={"ETag": 'W/"1"'}))
    fetch(wanted(url), tmp_path, client)
    assert site.ranges("/a") == [None, None]


def test_a_part_that_is_longer_than_the_file_is_thrown_away(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000))
    with pytest.raises(NotFetched):
        fetch(wanted(url), tmp_path, Client(Manners(tries=1)))
    with (tmp_path / "in/file.bin.part").open("ab") as part:
        part.write(BODY)
    assert fetch(wanted(url), tmp_path, client).sha256 == SHA256


def test_a_part_that_is_whole_is_not_fetched_again(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000))
    with pytest.raises(NotFetched):
        fetch(wanted(url), tmp_path, Client(Manners(tries=1)))
    with (tmp_path / "in/file.bin.part").open("ab") as part:
        part.write(BODY[100_000:])  # as if killed just before the end
    assert fetch(wanted(url), tmp_path, client).sha256 == SHA256
    assert site.ranges("/a") == [None, "bytes=300000-"]


def test_a_file_larger_than_the_disk_is_not_begun(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY, Answer(headers={"Content-Length": str(1 << 60)}))
    with pytest.raises(NotFetched, match=r"needs 1152921504606846976 bytes, \d+ are free; make room"):
        fetch(wanted(url), tmp_path, Client(Manners(limit=1 << 62)))
    assert listed(tmp_path) == []


def test_chunked_answers_without_a_length_are_read_to_their_end(site: Site, tmp_path: Path, client: Client) -> None:
    site.lengths = False
    url = site.put("/a", BODY, Answer(cut=1000))
    assert fetch(wanted(url), tmp_path, client).sha256 == SHA256
    assert len(site.asked) == 2


def test_the_server_is_asked_again_after_the_time_it_named(
    site: Site, tmp_path: Path, client: Client, waits: list[float]
) -> None:
    url = site.put("/a", BODY, Answer(429, {"Retry-After": "7"}), Answer(503))
    fetch(wanted(url), tmp_path, client)
    assert len(site.asked) == 3
    assert waits[0] == pytest.approx(7, abs=0.5)
    assert 2.0 <= next(wait for wait in waits if wait < 6) <= 2.5  # the second failure doubles the wait


def test_nobody_waits_an_hour(site: Site, tmp_path: Path, client: Client, waits: list[float]) -> None:
    url = site.put("/a", BODY, Answer(429, {"Retry-After": "3600"}))
    with pytest.raises(NotFetched, match="asks to wait 3600 s") as caught:
        fetch(wanted(url), tmp_path, client)
    assert not caught.value.final
    assert waits == []


def test_tries_without_progress_come_to_an_end(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY, *[Answer(500)] * 9)
    with pytest.raises(NotFetched, match="500"):
        fetch(wanted(url), tmp_path, client)
    assert len(site.asked) == 3


def test_a_missing_file_is_asked_for_once(site: Site, tmp_path: Path, client: Client) -> None:
    with pytest.raises(NotFetched, match=r"/none: 404 Not Found") as caught:
        fetch(wanted(f"{site.url}/none"), tmp_path, client)
    assert caught.value.final
    assert len(site.asked) == 1
    assert listed(tmp_path) == []


@pytest.mark.parametrize(
    ("size", "checksum", "message"),
    [
        (299_999, "", "300000 bytes instead of 299999"),
        (None, "sha256:" + "0" * 64, "not what was expected"),
        (300_000, "sha256:" + "0" * 64, "not what was expected"),
    ],
)
def test_another_file_than_expected_is_refused_and_leaves_nothing(
    site: Site, tmp_path: Path, client: Client, size: int | None, checksum: str, message: str
) -> None:
    url = site.put("/a", BODY)
    with pytest.raises(NotFetched, match=message) as caught:
        fetch(wanted(url, size=size, checksum=checksum), tmp_path, client)
    assert caught.value.final
    assert listed(tmp_path) == []


@pytest.mark.parametrize("lengths", [True, False])
def test_nothing_over_the_limit_is_kept(site: Site, tmp_path: Path, lengths: bool) -> None:
    site.lengths = lengths
    url = site.put("/a", BODY)
    with pytest.raises(NotFetched, match="100000"):
        fetch(wanted(url), tmp_path, Client(Manners(limit=100_000)))
    assert not (tmp_path / "in/file.bin").exists()
    assert not (tmp_path / "in/file.bin.part").exists()


def test_redirects_are_followed_but_not_in_circles(site: Site, tmp_path: Path, client: Client) -> None:
    site.put("/a", BODY)
    url = site.put("/old", b"", Answer(302, {"Location": "/a"}))
    assert fetch(wanted(url), tmp_path, client).sha256 == SHA256
    url = site.put("/round", b"", *[Answer(302, {"Location": "/round"})] * 40)
    with pytest.raises(NotFetched, match="too many redirects"):
        fetch(wanted(url, "round"), tmp_path, client)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/a", "file:///etc/passwd", "127.0.0.1/a", "http:///a"])
def test_only_web_addresses_are_fetched(tmp_path: Path, client: Client, url: str) -> None:
    with pytest.raises(BadInput, match="is no web address"):
        fetch(wanted(url), tmp_path, client)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\\b", "C:/x", "", ".", "a\0b"])
def test_no_file_is_put_outside_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadInput, match="does not lie inside"):
        place(tmp_path, path)


# Many files


SLOW = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would we
from pathlib import Path
from corpora.downloads import fetch_all
from corpora.fetch import Wanted
url, folder = sys.argv[1], Path(sys.argv[2])
fetch_all([Wanted(f"{url}/{n}", f"{n}") for n in range(4)] + [Wanted(f"{url}/slow", "slow")], folder, jobs=2)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_process_has_lost_nothing_that_had_arrived(site: Site, tmp_path: Path, end: signal.Signals) -> None:
    many(site, 4)
    stopped = threading.Event()
    site.put("/slow", BODY, Answer(cut=100_000, held=stopped))
    process = subprocess.Popen([sys.executable, "-c", SLOW, site.url, str(tmp_path)], stderr=subprocess.DEVNULL)
    part = tmp_path / "slow.part"
    while process.poll() is None and (not part.exists() or part.stat().st_size < 100_000 - (1 << 16)):
        time.sleep(0.01)
    process.send_signal(end)
    stopped.set()
    assert process.wait(LONG) != 0
    had, known = part.stat().st_size, read_record(tmp_path / RECORD)
    found = fetch_all([Wanted(f"{site.url}/slow", "slow"), Wanted(f"{site.url}/0", "0")], tmp_path)
    assert (tmp_path / "slow").read_bytes() == BODY
    assert (found.there, found.failed) == (int("0" in known), {})
    assert site.ranges("/slow") == [None, f"bytes={had}-"]


def many(site: Site, count: int) -> list[Wanted]:
    return [Wanted(site.put(f"/{n}", b"%d" % n * 100), f"{n % 3}/{n}.txt") for n in range(count)]


def test_many_files_arrive_and_come_only_once(site: Site, tmp_path: Path) -> None:
    files = many(site, 20)
    first = fetch_all(files, tmp_path, jobs=4)
    assert (first.arrived, first.there, first.failed) == (20, 0, {})
    assert all((tmp_path / file.path).read_bytes() == site.files[f"/{n}"] for n, file in enumerate(files))
    second = fetch_all(files, tmp_path, jobs=4)
    assert (second.arrived, second.there, len(site.asked)) == (0, 20, 20)


def test_the_record_names_what_arrived_and_what_failed(site: Site, tmp_path: Path) -> None:
    files = [*many(site, 2), Wanted(f"{site.url}/gone", "gone.txt")]
    assert fetch_all(files, tmp_path).failed == {"gone.txt": f"{site.url}/gone: 404 Not Found"}
    rows = {row["path"]: row for row in map(json.loads, (tmp_path / RECORD).read_text().splitlines())}
    assert rows["1/1.txt"] == {
        "path": "1/1.txt",
        "url": f"{site.url}/1",
        "status": "done",
        "bytes": 100,
        "sha256": hashlib.sha256(b"1" * 100).hexdigest(),
    }
    assert (rows["gone.txt"]["status"], rows["gone.txt"]["final"]) == ("failed", True)


def test_what_is_gone_is_not_asked_for_again_unless_told_so(site: Site, tmp_path: Path) -> None:
    files = [Wanted(f"{site.url}/gone", "gone.txt")]
    for again, asked in [(False, 1), (False, 1), (True, 2)]:
        assert fetch_all(files, tmp_path, again=again).failed.keys() == {"gone.txt"}
        assert len(site.asked) == asked
    site.put("/gone", b"back")
    assert fetch_all(files, tmp_path, again=True).arrived == 1


def test_a_damaged_or_lost_file_is_fetched_again(site: Site, tmp_path: Path) -> None:
    files = many(site, 3)
    fetch_all(files, tmp_path)
    (tmp_path / files[0].path).write_bytes(b"short")
    (tmp_path / files[1].path).unlink()
    found = fetch_all(files, tmp_path)
    assert (found.arrived, found.there) == (2, 1)


def test_a_record_cut_in_the_middle_of_a_line_is_gone_on_with(site: Site, tmp_path: Path) -> None:
    files = many(site, 3)
    fetch_all(files, tmp_path)
    record = tmp_path / RECORD
    record.write_bytes(record.read_bytes()[:-20])
    assert fetch_all(files, tmp_path).arrived == 1
    assert len(read_record(record)) == 3
    assert fetch_all(files, tmp_path).there == 3


def test_one_host_never_gets_more_connections_than_allowed(site: Site, tmp_path: Path) -> None:
    site.gate = threading.Barrier(2)  # every answer waits for a second request: two must be allowed at once
    fetch_all(many(site, 12), tmp_path, jobs=8, manners=Manners(per_host=2, timeout=LONG))
    assert site.most_open == 2


def test_a_dead_network_is_told_after_the_first_files(tmp_path: Path) -> None:
    with serving() as closed:
        url = closed.url
    files = [Wanted(f"{url}/{n}", f"{n}") for n in range(500)]
    with pytest.raises(SourceError, match=r"6 files in a row could not be fetched .*no connection.*0 arrived before"):
        fetch_all(files, tmp_path, jobs=2, manners=Manners(tries=1))
    assert len(read_record(tmp_path / RECORD)) == 6


def test_a_host_that_wants_to_be_left_alone_is_left_alone(site: Site, tmp_path: Path) -> None:
    files = many(site, 2) + [
        Wanted(site.put(f"/{n}", b"x", *[Answer(429, {"Retry-After": "900"})] * 9), f"{n}") for n in range(2, 300)
    ]
    with pytest.raises(SourceError, match=r"the server asks to wait \d+ s; try again then\); 2 arrived before"):
        fetch_all(files, tmp_path, jobs=1)
    assert len(site.asked) == 3
    assert {row["final"] for row in read_record(tmp_path / RECORD).values() if row["status"] == "failed"} == {False}


def test_two_files_cannot_go_to_one_place(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="two files are to go to 'x'"):
        fetch_all([Wanted("http://127.0.0.1/a", "x"), Wanted("http://127.0.0.1/b", "x")], tmp_path)


def test_a_file_of_no_use_is_noted_as_failed(site: Site, tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise NotFetched(f"{path.name} is no archive", final=True)

    assert fetch_all(many(site, 1), tmp_path, then=refuse).failed == {"0/0.txt": "0.txt is no archive"}
