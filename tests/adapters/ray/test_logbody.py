"""Reading a log out of Ray's JSON while it comes."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from hybrid.adapters.ray.jobs import RayJobs
from hybrid.adapters.ray.logbody import log_text
from hybrid.core.errors import ClusterError
from hybrid.core.ports import LogEnd
from tests.adapters.ray.test_tail import dashboard, serve

TEXT = 'one "two"\\ \n\t\r\x1b[0m ü € 😀 \\u0041 \ud83d lone \\'


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1_000])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_log_is_what_was_sent_wherever_it_is_cut(size: int, is_ascii: bool) -> None:
    text = TEXT if is_ascii else TEXT.replace("\ud83d", "")
    body = json.dumps({"logs": text}, ensure_ascii=is_ascii).encode()

    pieces = list(log_text(body[at : at + size] for at in range(0, len(body), size)))

    assert "".join(pieces) == text
    assert "😀" in "".join(pieces)


def test_an_empty_log_is_empty() -> None:
    assert list(log_text([b'{"logs": ""}'])) == []


@pytest.mark.parametrize(
    "body",
    [b"", b'{"logs": null}', b"<html>" * 20, b'{"logs": "half', b'{"logs": "' + b"\\ux" * 99],
    ids=["empty", "null", "html", "cut", "no-json"],
)
def test_what_is_no_log_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a|too early"):
        list(log_text([body]))


def test_of_a_large_log_only_the_end_is_kept() -> None:
    log = "".join(f"line {number}\n" for number in range(200_000))
    with dashboard([], log=log) as url:
        jobs = RayJobs(url, "token", address="127.0.0.1:1")
        end = jobs.log_end("j", limit_bytes=12)
        pieces = list(jobs.logs("j"))
        jobs.close()

    assert end == LogEnd(text="line 199999\n", skipped_bytes=len(log) - 12)
    assert "".join(pieces) == log
    assert len(pieces) > 1


def test_an_answer_that_is_no_log_is_said() -> None:
    async def logs(_: web.Request) -> web.Response:
        return web.json_response({"lines": []})

    app = web.Application()
    app.add_routes([web.get("/api/jobs/j/logs", logs)])
    with serve(app) as url:
        jobs = RayJobs(url, "token", address="127.0.0.1:1")
        with pytest.raises(ClusterError, match="not understood"):
            list(jobs.logs("j"))
        jobs.close()


@pytest.mark.parametrize("jobs_list", [["x"], [{"submission_id": "j"}], {"a": 1}, 5])
def test_a_list_of_jobs_that_is_none_is_said(jobs_list: object) -> None:
    async def listed(_: web.Request) -> web.Response:
        return web.json_response(jobs_list)

    app = web.Application()
    app.add_routes([web.get("/api/jobs/", listed)])
    with serve(app) as url:
        jobs = RayJobs(url, "token", address="127.0.0.1:1")
        with pytest.raises(ClusterError, match="not understood"):
            jobs.statuses()
        jobs.close()
