"""Follows a Ray job's log over the dashboard's websocket.

The websocket sends each line once; the plain HTTP endpoint can only send the whole log again.
aiohttp is used because it comes with `ray[default]`; httpx has no websockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping

from hybrid.core.errors import ClusterError

_HEARTBEAT_S = 20.0


def tail(url: str, headers: Mapping[str, str], job_id: str) -> Iterator[str]:
    """Yield the log in pieces, from its start, until Ray closes the stream.

    The stream can end early, for example when the node of the driver dies: ask for the
    job's state afterwards. Its end comes up to 3 s after the job's, as Ray polls the file.

    Raises:
        ClusterError: The stream could not be opened, or broke.
    """
    loop = asyncio.new_event_loop()  # the caller is synchronous, and may be any thread
    pieces = _pieces(url, headers, job_id)

    async def next_piece() -> str | None:
        return await anext(pieces, None)

    try:
        while (piece := loop.run_until_complete(next_piece())) is not None:
            yield piece
    finally:
        loop.run_until_complete(pieces.aclose())
        loop.close()


async def _pieces(url: str, headers: Mapping[str, str], job_id: str) -> AsyncGenerator[str, None]:
    import aiohttp

    path = f"/api/jobs/{job_id}/logs/tail"
    try:
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.ws_connect(f"{url}{path}", heartbeat=_HEARTBEAT_S, max_msg_size=0) as stream,
        ):
            async for message in stream:
                if message.type is aiohttp.WSMsgType.TEXT:
                    yield message.data
    except (aiohttp.ClientError, TimeoutError) as err:
        raise ClusterError(
            f"Ray's dashboard at {url} cannot stream the log of job {job_id} ({err}); check that "
            "the head is up, then ask again: the log starts over"
        ) from err
