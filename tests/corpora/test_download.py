"""Downloads from a server on loopback: retried, resumed, checked and recorded."""

from __future__ import annotations

import hashlib
import random
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from corpora.download import RECORD, Client, NotFetched, RemoteFile, fetch_all, filter_zip, place, read_record
from ncs.errors import BadInput, SourceError
from ncs.sources import walk
from tests.gitrepo import contents
from tests.waiting import LONG, until
from tests.webserver import Answer, Site, etag, serving

BODY = random.Random(7).randbytes(300_000)
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(tries=3) as client:
        client.sleep = lambda seconds: None
        yield client


def remote(url: str, path: str = "in/file.bin", size: int | None = None, checksum: str = "") -> RemoteFile:
    return RemoteFile(url, path, size, checksum)


def test_a_file_arrives_whole_and_alone_with_its_hash(site: Site, tmp_path: Path, client: Client) -> None:
    url = site.put("/a", BODY)
    git = subprocess.run(["git", "hash-object", "--stdin"], input=BODY, capture_output=True, check=True).stdout
    for site.lengths, checksum in ((True, f"sha256:{SHA256}"), (False, f"git:{git.decode().strip()}")):
        assert client.fetch(remote(url, size=len(BODY), checksum=checksum), tmp_path) == SHA256
        assert contents(tmp_path) == {"in/file.bin": BODY}
    assert len(site.asked) == 2
    assert site.asked[0][1]["user-agent"].startswith("neural-code-search/")


@pytest.mark.parametrize("lengths", [True, False])
def test_a_cut_connection_is_resumed_where_it_broke(site: Site, tmp_path: Path, client: Client, lengths: bool) -> None:
    site.lengths = lengths
    url = site.put("/a", BODY, Answer(cut=100_000), Answer(cut=50_000))
    assert client.fetch(remote(url), tmp_path) == SHA256
    assert site.ranges("/a") == [None, "bytes=100000-", "bytes=150000-"]
    assert site.asked[1][1]["if-range"] == etag(BODY)


@pytest.mark.parametrize(
    ("body", "appended", "requests"),
    [(BODY, b"", 2), (BODY[::-1], b"", 2), (BODY, BODY[100_000:], 2), (BODY, BODY, 3)],
    ids=["same", "changed", "part is whole", "part is too long"],
)
def test_a_later_call_resumes_unless_the_file_has_changed_or_the_part_is_too_long(
    site: Site, tmp_path: Path, client: Client, body: bytes, appended: bytes, requests: int
) -> None:
    url = site.put("/a", BODY, Answer(cut=100_000))
    with Client(tries=1) as once, pytest.raises(NotFetched, match="no connection") as caught:
        once.fetch(remote(url), tmp_path)
    assert not caught.value.final
    assert contents(tmp_path).keys() == {"in/file.bin.part", "in/file.bin.part.json"}
    with (tmp_path / "in/file.bin.part").open("ab") as part:
        part.write(appended)
    site.put("/a", body)
    client.fetch(remote(url), tmp_path)
    assert site.ranges("/a")[1] == f"bytes={100_000 + len(appended)}-"
    assert len(site.asked) == requests
    assert contents(tmp_path) == {"in/file.bin": body}


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


def test_a_busy_server_is_asked_again_after_the_time_it_names(site: Site, tmp_path: Path, client: Client) -> None:
    waits: list[float] = []
    client.sleep = waits.append
    client.fetch(remote(site.put("/a", BODY, Answer(429, {"Retry-After": "7"}), Answer(503))), tmp_path)
    assert waits[0] == 7
    assert 2.0 <= waits[1] <= 2.5  # the second failure doubles the wait
    with pytest.raises(NotFetched, match="500"):
        client.fetch(remote(site.put("/c", BODY, *[Answer(500)] * 9), "c"), tmp_path)
    assert len(site.ranges("/c")) == 3
    with pytest.raises(NotFetched, match="asks to wait 3600 s") as caught:
        client.fetch(remote(site.put("/b", BODY, Answer(429, {"Retry-After": "3600"})), "b"), tmp_path)
    assert not caught.value.final


@pytest.mark.parametrize(
    ("path", "size", "checksum", "message"),
    [
        ("/a", 299_999, "", "300000 bytes instead of at most 299999"),
        ("/a", 300_001, "", "not what was expected"),
        ("/a", None, "sha256:" + "0" * 64, "not what was expected"),
        ("/a", None, "git:" + "0" * 40, "not what was expected"),
        ("/none", None, "", "/none: 404 Not Found"),
    ],
)
def test_another_file_than_expected_is_refused_at_once_and_leaves_nothing(
    site: Site, tmp_path: Path, client: Client, path: str, size: int | None, checksum: str, message: str
) -> None:
    site.put("/a", BODY)
    with pytest.raises(NotFetched, match=message) as caught:
        client.fetch(remote(site.url + path, size=size, checksum=checksum), tmp_path)
    assert caught.value.final
    assert contents(tmp_path) == {}
    assert len(site.asked) == 1


@pytest.mark.parametrize("lengths", [True, False])
def test_nothing_over_the_limit_or_larger_than_the_disk_is_kept(site: Site, tmp_path: Path, lengths: bool) -> None:
    site.lengths = lengths
    with Client(limit=100_000) as client, pytest.raises(NotFetched, match="100000"):
        client.fetch(remote(site.put("/a", BODY)), tmp_path)
    url = site.put("/b", BODY, Answer(headers={"Content-Length": str(1 << 60)}))
    with Client(limit=1 << 62) as client, pytest.raises(NotFetched, match=r"needs 1152921504606846976 bytes, \d+ are"):
        client.fetch(remote(url), tmp_path)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("url", ["file:///etc/passwd", "127.0.0.1/a", "http:///a"])
def test_only_web_addresses_are_fetched(tmp_path: Path, client: Client, url: str) -> None:
    with pytest.raises(BadInput, match="is not a URL"):
        client.fetch(remote(url), tmp_path)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\\b", "C:/x", "", ".", "a\0b"])
def test_no_file_is_put_outside_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadInput, match="leads out of its folder"):
        place(tmp_path, path)
    with pytest.raises(BadInput, match="leads out of its folder"):
        fetch_all([RemoteFile("http://127.0.0.1/a", path)], tmp_path)


def test_two_files_cannot_go_to_one_path(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="two files have the path 'x'"):
        fetch_all([remote("http://127.0.0.1/a", "x"), remote("http://127.0.0.1/b", "x")], tmp_path)


@pytest.mark.parametrize(
    "to", ["http://files.example.org/", "https://files.example.org/a"], ids=["without TLS", "in a circle"]
)
def test_redirects_away_from_tls_and_in_circles_are_refused(to: str, tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.scheme == "https":
            return httpx.Response(302, headers={"Location": to})
        return httpx.Response(200, content=b"changed on the way")

    with Client(transport=httpx.MockTransport(answer)) as client, pytest.raises(NotFetched, match="redirect"):
        client.fetch(RemoteFile("https://files.example.org/a", "a"), tmp_path)
    assert not (tmp_path / "a").exists()


FETCH = """
import sys
from pathlib import Path
from corpora.download import RemoteFile, fetch_all
url, folder = sys.argv[1], Path(sys.argv[2])
fetch_all([RemoteFile(f"{url}/{name}", name) for name in ("quick", "slow")], folder, jobs=1)
"""


def test_a_killed_process_has_lost_nothing_that_had_arrived(site: Site, tmp_path: Path) -> None:
    stopped, part, record = threading.Event(), tmp_path / "slow.part", tmp_path / RECORD
    slow = RemoteFile(site.put("/slow", BODY, Answer(cut=100_000, held=stopped)), "slow")
    quick = RemoteFile(site.put("/quick", b"quick"), "quick")
    process = subprocess.Popen([sys.executable, "-c", FETCH, site.url, str(tmp_path)], stderr=subprocess.DEVNULL)
    until(lambda: "quick" in read_record(record) and part.exists() and part.stat().st_size > 30_000)
    process.kill()
    stopped.set()
    assert process.wait(LONG) != 0
    had = part.stat().st_size
    downloads = fetch_all([slow, quick], tmp_path)
    assert (tmp_path / "slow").read_bytes() == BODY
    assert (downloads.arrived, downloads.present, downloads.failed) == (1, 1, {})
    assert site.ranges("/slow") == [None, f"bytes={had}-"]


def many(site: Site, count: int) -> list[RemoteFile]:
    return [RemoteFile(site.put(f"/{n}", b"%d" % n * 100), f"{n % 3}/{n}.txt") for n in range(count)]


def test_only_what_is_damaged_lost_elsewhere_or_half_recorded_arrives_again(site: Site, tmp_path: Path) -> None:
    files = many(site, 20)
    first = fetch_all(files, tmp_path, jobs=4)
    assert (first.arrived, first.present, first.failed) == (20, 0, {})
    assert all((tmp_path / file.path).read_bytes() == site.files[f"/{n}"] for n, file in enumerate(files))
    assert read_record(tmp_path / RECORD)["1/1.txt"] == {
        "path": "1/1.txt", "url": f"{site.url}/1", "status": "done", "bytes": 100,
        "sha256": hashlib.sha256(b"1" * 100).hexdigest(),
    }  # fmt: skip
    assert fetch_all(files, tmp_path).present == 20
    assert len(site.asked) == 20
    record = tmp_path / RECORD
    record.write_bytes(record.read_bytes()[:-20])
    assert fetch_all(files, tmp_path).arrived == 1
    (tmp_path / files[0].path).write_bytes(b"short")
    (tmp_path / files[1].path).unlink()
    files[2] = RemoteFile(site.put("/newer", b"new"), files[2].path)
    again = fetch_all(files, tmp_path)
    assert (again.arrived, again.present) == (3, 17)
    assert fetch_all(files, tmp_path).present == 20


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
    assert len(site.asked) < 10


def test_a_reduced_archive_keeps_safe_wanted_files_and_is_read_as_the_same_repository(tmp_path: Path) -> None:
    files = {"y-1/src/A.java": "class A {}", "y-1/logo.png": "x" * 50_000, "y-1/B.java": "class B {}"}
    outside = {"../evil.java": "1", "/etc/evil.java": "2", "a/../../b.java": "3"}
    path = tmp_path / "x+y.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, **outside}.items():
            archive.writestr(name, text)
        link = zipfile.ZipInfo("y-1/C.java")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("y-1/Bomb.java", b"x" * 1_000_000, zipfile.ZIP_BZIP2)  # zipfile unpacks it without a limit
    filter_zip(path, lambda path: path.endswith(".java"))
    assert zipfile.ZipFile(path).namelist() == ["y-1/src/A.java", "y-1/B.java"]
    read = [(file.path, file.data) for file in walk([path], readable=lambda path: True)]
    assert read == [("B.java", b"class B {}"), ("src/A.java", b"class A {}")]
    assert [path.name for path in tmp_path.iterdir()] == ["x+y.zip"]


def test_an_archive_that_unpacks_to_too_much_or_is_none_is_removed(tmp_path: Path) -> None:
    bomb, page = tmp_path / "bomb.zip", tmp_path / "page.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.java", b"0" * 1_000_000)
    page.write_text("<html>Try again later</html>")
    for path, final, message in (bomb, True, "over 1000 bytes"), (page, False, r"page\.zip is damaged or no archive"):
        with pytest.raises(NotFetched, match=message) as caught:
            filter_zip(path, lambda path: True, limit=1000)
        assert caught.value.final == final
    assert list(tmp_path.iterdir()) == []
