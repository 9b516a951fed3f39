"""The writer of logs: one winner for a name, whole files only, and errors that say what to do."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from obstore.store import MemoryStore

from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import Location
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import LogNotWritten, UsageError

NOBODY = 65534


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder without a log."""
    root = tmp_path / "a table é %20 #1"
    root.mkdir()
    return root


def names(table: Path) -> list[str]:
    return sorted(str(path.relative_to(table / "_delta_log")) for path in (table / "_delta_log").rglob("*"))


def test_the_first_file_creates_the_log(table: Path) -> None:
    writer = LogWriter.open(str(table))
    assert not (table / "_delta_log").exists()
    assert writer.create(commit_name(0), b"{}\n")
    assert LogDirectory.open(str(table)).read(0) == b"{}\n"
    assert writer.create("_sidecars/x.parquet", b"PAR1")
    assert names(table) == [commit_name(0), "_sidecars", "_sidecars/x.parquet"]


def test_a_name_that_is_taken_stays_as_it_was(table: Path) -> None:
    writer = LogWriter.open(str(table))
    assert writer.create(commit_name(0), b"first")
    assert not writer.create(commit_name(0), b"second")
    assert not writer.create(commit_name(0), b"second" * 10_000_000)
    assert LogDirectory.open(str(table)).read(0) == b"first"
    assert names(table) == [commit_name(0)]


def _race(location: str, barrier: Barrier, rounds: int, me: int, answers: Any) -> None:
    writer = LogWriter.open(location)
    won = []
    for version in range(rounds):
        barrier.wait()
        if writer.create(commit_name(version), f"process {me}".encode() * 1000):
            won.append(version)
    answers.put((me, won))


def test_of_eight_processes_that_write_one_name_exactly_one_wins(table: Path) -> None:
    context = multiprocessing.get_context("spawn")  # obstore has threads, which a fork would lose
    rounds, processes = 50, 8
    barrier, answers = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=_race, args=(str(table), barrier, rounds, me, answers)) for me in range(processes)
    ]
    for process in running:
        process.start()
    won = dict(answers.get(timeout=120) for _ in running)
    for process in running:
        process.join()
    assert sorted(version for versions in won.values() for version in versions) == list(range(rounds))
    log = LogDirectory.open(str(table))
    for me, versions in won.items():
        assert all(log.read(version) == f"process {me}".encode() * 1000 for version in versions)
    assert names(table) == [commit_name(version) for version in range(rounds)]


_WRITE_UNTIL_KILLED = """
import os, signal, sys, threading
from pathlib import Path
from mainstem.deltalog.writing import LogWriter
log = Path(sys.argv[1]) / "_delta_log"
def watch():
    while not any("#" in path.name for path in log.glob("*")):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
log.mkdir()
data = b"x" * (1 << 28)
threading.Thread(target=watch, daemon=True).start()
getattr(LogWriter.open(sys.argv[1]), sys.argv[2])(sys.argv[3], data)
"""


@pytest.mark.parametrize(
    ("method", "name"), [("create", commit_name(1)), ("replace", "_last_checkpoint")], ids=["create", "replace"]
)
def test_what_a_kill_leaves_is_no_file_of_a_log(table: Path, method: str, name: str) -> None:
    killed = subprocess.run([sys.executable, "-c", _WRITE_UNTIL_KILLED, str(table), method, name], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert names(table) == [f"{name}#1"]
    writer = LogWriter.open(str(table))
    assert writer.create(commit_name(0), b"{}")
    listing = LogDirectory.open(str(table)).list()
    assert [commit.version for commit in listing.commits] == [0]
    assert LogDirectory.open(str(table)).last_checkpoint_hint(listing) is None
    assert writer.create(commit_name(1), b"{}")
    writer.replace("_last_checkpoint", b"{}")
    assert (table / "_delta_log" / name).read_bytes() == b"{}"


def test_the_hint_is_replaced_and_nothing_else_is(table: Path) -> None:
    writer = LogWriter.open(str(table))
    writer.replace("_last_checkpoint", b"1")
    writer.replace("_last_checkpoint", b"2")
    assert (table / "_delta_log" / "_last_checkpoint").read_bytes() == b"2"
    for name in (commit_name(0), "x.checkpoint.parquet"):
        with pytest.raises(UsageError, match="never replaced"):
            writer.replace(name, b"")
    with pytest.raises(UsageError, match="never replaced"):
        writer.upload(commit_name(0), io.BytesIO(b""))
    assert names(table) == ["_last_checkpoint"]


def test_a_part_of_a_checkpoint_is_uploaded_from_a_path_or_a_file(table: Path, tmp_path: Path) -> None:
    writer = LogWriter.open(str(table))
    content = os.urandom(20_000_000)
    (tmp_path / "part").write_bytes(content)
    writer.upload("00.checkpoint.parquet", tmp_path / "part")
    writer.upload("_sidecars/s.parquet", io.BytesIO(b"small"))
    writer.upload("_sidecars/s.parquet", io.BytesIO(b"again"))
    assert (table / "_delta_log" / "00.checkpoint.parquet").read_bytes() == content
    assert (table / "_delta_log" / "_sidecars" / "s.parquet").read_bytes() == b"again"


def test_deleting_what_is_gone_is_no_error(table: Path) -> None:
    writer = LogWriter.open(str(table))
    for version in range(4):
        writer.create(commit_name(version), b"{}")
    writer.delete([])
    writer.delete([commit_name(version) for version in (0, 9, 1)])
    writer.delete([commit_name(0)])
    writer.delete([commit_name(2)])
    assert names(table) == [commit_name(3)]


@pytest.mark.parametrize(
    "name", ["", ".hidden", "../x.json", "a/b.json", "_sidecars/../x", "_sidecars/", "/x", "x\n", "é.json", "a#1"]
)
def test_a_name_that_leads_elsewhere_is_refused(table: Path, name: str) -> None:
    writer = LogWriter.open(str(table))
    calls: list[Callable[[], object]] = [
        lambda: writer.create(name, b""),
        lambda: writer.upload(name, io.BytesIO(b"")),
        lambda: writer.delete([name]),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="is no name for a file of a log"):
            call()
    assert not (table / "_delta_log").exists()


@pytest.mark.parametrize("name", ["_delta_log", "_delta_log/_sidecars"])
def test_a_log_that_is_a_symbolic_link_is_not_written(table: Path, tmp_path: Path, name: str) -> None:
    early = LogWriter.open(str(table))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (table / name).parent.mkdir(exist_ok=True)
    (table / name).symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is a symbolic link"):
        LogWriter.open(str(table))
    with pytest.raises(UsageError, match="is a symbolic link"):
        early.create(commit_name(0), b"")
    assert list(elsewhere.iterdir()) == []


_FAIL = """
import os, resource, sys
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import LogNotWritten
writer = LogWriter.open(sys.argv[1])
{handicap}
try:
    writer.create(sys.argv[2], b"x" * 100_000)
except LogNotWritten as error:
    print(error)
"""


def _failure(table: Path, handicap: str) -> str:
    """What a process says that cannot write; on its own, because it gives up rights for good."""
    command = [sys.executable, "-c", _FAIL.format(handicap=handicap), str(table), commit_name(0)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_folder_that_may_not_be_written_says_so(table: Path) -> None:
    (table / "_delta_log").mkdir(mode=0o555)
    message = _failure(table, f"if os.getuid() == 0: os.setuid({NOBODY})")
    assert f"{commit_name(0)} was not written: " in message
    assert "Permission denied" in message
    assert "Debug source" not in message
    assert "Check rights, space and credentials" in message
    assert names(table) == []


def test_a_full_disk_leaves_nothing(table: Path) -> None:
    handicap = "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"  # the disk takes no more of a file than that
    assert "was not written: " in _failure(table, handicap)
    assert names(table) == []


def test_a_file_in_place_of_the_log_says_so(table: Path) -> None:
    (table / "_delta_log").write_text("not a folder")
    with pytest.raises(LogNotWritten, match="was not written") as caught:
        LogWriter.open(str(table)).create(commit_name(0), b"")
    assert caught.value.retryable
    assert (table / "_delta_log").read_text() == "not a folder"


class _Refusing(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


def test_an_object_store_that_refuses_the_credentials_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        writer = LogWriter.open("s3://bucket/table")
        with pytest.raises(LogNotWritten, match=r"s3://bucket/table/_delta_log/0{20}\.json was not written: .*403"):
            writer.create(commit_name(0), b"{}")
        server.shutdown()


def test_the_checksum_that_hadoop_keeps_beside_a_file_goes_with_the_file(table: Path) -> None:
    writer = LogWriter.open(str(table))
    log = table / "_delta_log"
    (log / "_sidecars").mkdir(parents=True)
    names_ = (commit_name(0), "_last_checkpoint", "1.checkpoint.parquet", "_sidecars/s.parquet", commit_name(9))
    stale = [(log / name).with_name(f".{(log / name).name}.crc") for name in names_]
    for file in stale:
        file.write_bytes(b"crc of another file")
    writer.create(names_[0], b"")
    writer.replace(names_[1], b"")
    writer.upload(names_[2], io.BytesIO(b""))
    writer.upload(names_[3], io.BytesIO(b""))
    writer.delete([names_[4]])
    assert not any(file.exists() for file in stale)


def test_a_part_that_others_wrote_is_adopted_from_a_scratch_folder_and_the_rest_of_it_is_discarded(table: Path) -> None:
    writer = LogWriter.open(str(table))
    folder = f".mainstem-{uuid4()}"
    scratch = table / "_delta_log" / folder
    (scratch / "_temporary").mkdir(parents=True)
    for name in ("part-1.parquet", ".part-1.parquet.crc", "_SUCCESS", "part-2.parquet"):
        (scratch / name).write_bytes(name.encode())
    writer.scratch_write(f"{folder}/part-3.parquet", b"3")
    found = writer.scratch_files(folder)
    assert [name for name in found if name.startswith("part")] == ["part-1.parquet", "part-2.parquet", "part-3.parquet"]
    writer.adopt(f"{folder}/part-1.parquet", "1.checkpoint.parquet")
    assert (table / "_delta_log" / "1.checkpoint.parquet").read_bytes() == b"part-1.parquet"
    assert writer.find("1.checkpoint.parquet").size_bytes == len("part-1.parquet")
    writer.discard(folder)
    writer.discard(folder)
    assert names(table) == ["1.checkpoint.parquet"]
    for wrong in ("..", ".mainstem-x", "_sidecars", f"{folder}/..", ".mainstem-"):
        with pytest.raises(UsageError, match="scratch folder"):
            writer.discard(wrong)
        with pytest.raises(UsageError, match="scratch folder"):
            writer.adopt(f"{wrong}/part-1.parquet", "1.checkpoint.parquet")
    with pytest.raises(UsageError, match="never replaced"):
        writer.adopt(f"{folder}/part-2.parquet", commit_name(0))


def test_an_object_store_is_written_as_a_disk_is() -> None:
    location = Location("memory://bucket/table", MemoryStore(), None)
    writer, log = LogWriter(location), LogDirectory(location)
    assert writer.create(commit_name(0), b"first")
    assert not writer.create(commit_name(0), b"second")
    assert log.read(0) == b"first"
    writer.replace("_last_checkpoint", b"1")
    writer.replace("_last_checkpoint", b"2")
    assert log.read_file("_last_checkpoint") == b"2"
    content = os.urandom(12_000_000)
    writer.upload("_sidecars/s.parquet", io.BytesIO(content))
    assert log.read_file("_sidecars/s.parquet") == content
    assert writer.find("_sidecars/s.parquet").size_bytes == len(content)
    with pytest.raises(LogNotWritten, match="was not found"):
        writer.find("_sidecars/other.parquet")
    folder = f".mainstem-{uuid4()}"
    for place in range(3):
        writer.scratch_write(f"{folder}/part-{place}.parquet", b"part")
    writer.adopt(f"{folder}/part-1.parquet", "1.checkpoint.parquet")
    assert writer.scratch_files(folder) == ["part-0.parquet", "part-2.parquet"]
    writer.discard(folder)
    writer.delete([commit_name(7), "1.checkpoint.parquet", commit_name(8)])
    found = sorted(file.name for file in log.files())
    assert found == [commit_name(0), "_last_checkpoint", "_sidecars/s.parquet"]
