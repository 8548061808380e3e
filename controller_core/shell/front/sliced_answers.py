"""Sliced processing of large requests: each slice is authorized and answered separately, and the answers form one response.

    frame ──► slice 1 ──► handler ──┐
              slice 2 ──► handler ──┼──► one response
              …                     │
    at most WINDOW slices wait for their handlers at a time; one slice is decoded or encoded per iteration of the event loop

A slice whose answer has a top-level error ends the request: the response has this error, and later slices are not started. Elements
of earlier slices may have taken effect already, as when a connection breaks; clients repeat such requests.

See `request_limits` for the APIs that are sliced and `kafka_wire.slices` for decoding.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from controller_core.shell.front.request_limits import SLICED, slice_path
from kafka_wire import ApiKey, Body, codec
from kafka_wire.encoded_body import EncodedBody, Response, framed
from kafka_wire.joined_response import JoinedResponse
from kafka_wire.slices import slices

WINDOW = 4
"""Slices of a request that are processed concurrently, since handlers wait for commits and for brokers."""


class Answer(Protocol):
    """Answers a request or a slice of it."""

    async def __call__(self, body: Body, *, is_slice: bool) -> Body | EncodedBody:
        """Return the answer."""


class AnswerError(Exception):
    """An answer cannot be encoded: a defect of its handler, not of the request."""


class SlicedAnswers:
    """Answers large requests; all connections share one lock, so only one slice is decoded or encoded at a time."""

    def __init__(self) -> None:
        self._coding_lock = asyncio.Lock()

    async def answer(self, key: ApiKey, header: codec.RequestHeader, frame: bytes, answer: Answer) -> Response:
        """Answer a request slice by slice. Raises what `answer` raises, and CodecError before the first slice is answered."""
        sliced, version = SLICED[key], header.api_version
        found = slices(
            key.message + "Request",
            version,
            slice_path(key, version),
            frame,
            header.body_offset,
            max_elements=sliced.max_elements,
            unique=sliced.unique,
            weigh=sliced.weigh,
        )
        first = await self._next(found)
        assert first is not None, "a request has at least one slice"
        second = await self._next(found)
        joined = JoinedResponse(key, version, header.correlation_id, sliced.response)
        if second is None:
            whole = await answer(first, is_slice=False)
            if isinstance(whole, EncodedBody):
                return framed(codec.response_header(key, version, header.correlation_id), whole)
            await self._add(joined, whole)
            return joined.finish()
        waiting: deque[asyncio.Task[Body | EncodedBody]] = deque()
        try:
            waiting += [asyncio.create_task(_run(answer, slice_body)) for slice_body in (first, second)]
            while waiting:
                while len(waiting) < WINDOW and (body := await self._next(found)) is not None:
                    waiting.append(asyncio.create_task(_run(answer, body)))
                part = await waiting.popleft()
                await self._add(joined, part)
                if not isinstance(part, EncodedBody) and part.get("error_code"):
                    break
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        return joined.finish()

    async def _add(self, joined: JoinedResponse, part: Body | EncodedBody) -> None:
        async with self._coding_lock:
            try:
                joined.add(part)
            except codec.CodecError as error:
                raise AnswerError(str(error)) from error
            await asyncio.sleep(0)

    async def _next(self, found: Iterator[Body | None]) -> Body | None:
        """Decode the next slice; None after the last one."""
        async with self._coding_lock:
            for body in found:
                await asyncio.sleep(0)
                if body is not None:
                    return body
        return None


async def _run(answer: Answer, body: Body) -> Body | EncodedBody:
    return await answer(body, is_slice=True)
