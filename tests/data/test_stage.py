"""Copies on a node, from real files."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hybrid.data.stage import StagingError, stage


def test_a_second_job_uses_the_copy_that_is_there(tmp_path: Path) -> None:
    source, cache = tmp_path / "a", tmp_path / "cache"
    source.write_bytes(b"data")
    first = stage(str(source), cache)
    source.unlink()
    assert stage(str(source), cache) == first
    assert first.read_bytes() == b"data"


def test_a_damaged_copy_is_made_anew(tmp_path: Path) -> None:
    source, cache = tmp_path / "a", tmp_path / "cache"
    source.write_bytes(b"data")
    stage(str(source), cache).write_bytes(b"dada")
    assert stage(str(source), cache).read_bytes() == b"data"


def test_a_broken_copy_goes_on_where_it_was(tmp_path: Path) -> None:
    source, cache = tmp_path / "a", tmp_path / "cache"
    source.write_bytes(b"0123456789")
    made = stage(str(source), cache)
    made.unlink()
    made.with_suffix(".part").write_bytes(b"01234")
    said: list[str] = []
    assert stage(str(source), cache, say=said.append).read_bytes() == b"0123456789"
    assert "from 0.00 GB on" in said[0]


def test_what_is_not_the_right_file_is_refused(tmp_path: Path) -> None:
    source, cache = tmp_path / "a", tmp_path / "cache"
    source.write_bytes(b"data")
    with pytest.raises(StagingError, match="has the sha256"):
        stage(str(source), cache, sha256="0" * 64)
    right = hashlib.sha256(b"data").hexdigest()
    assert stage(str(source), cache, sha256=right).read_bytes() == b"data"
    with pytest.raises(StagingError, match="cannot be copied"):
        stage(str(tmp_path / "none"), cache)


def test_the_copy_used_longest_ago_leaves_first(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for name in "ab":
        (tmp_path / name).write_bytes(b"1234")
    first = stage(str(tmp_path / "a"), cache)
    second = stage(str(tmp_path / "b"), cache, limit_bytes=4)
    assert (first.exists(), second.exists()) == (False, True)


class _Ranges(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012  # of the one server of this test

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.asked.append(wanted)
        at = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
        self.send_response(206 if wanted else 200)
        self.end_headers()
        self.wfile.write(b"0123456789"[at:])

    def log_message(self, *_: object) -> None:
        pass


def test_a_web_server_is_asked_for_the_rest_only(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Ranges)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/a"
        made = stage(url, tmp_path)
        made.unlink()
        made.with_suffix(".part").write_bytes(b"01234")
        assert stage(url, tmp_path).read_bytes() == b"0123456789"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert _Ranges.asked == ["", "bytes=5-"]
