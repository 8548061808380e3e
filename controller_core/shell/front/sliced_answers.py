"""Answers to requests that are decoded in slices: each slice is judged and answered by itself, and the answers become one response.

    frame ──► slice 1 ──► handler ──┐
              slice 2 ──► handler ──┼──► one response
              …                     │
    at most WINDOW slices wait for their handlers at a time, and one slice is decoded or encoded in a turn of the event loop

A slice whose answer has an error at its top ends the request: its error is the response's, and later slices are not started.
Elements of earlier slices may have taken effect by then, as when a connection breaks: clients repeat such requests.

What is not here: which APIs are sliced (request_limits.py), and decoding (kafka_wire.slices).
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from controller_core.shell.front.request_limits import SLICED, slice_path
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body, CodecError, RequestHeader
from kafka_wire.encoded_body import EncodedBody, Response, framed
from kafka_wire.joined_response import JoinedResponse
from kafka_wire.slices import slices

WINDOW = 4
"""Slices of a request that are under way: handlers wait for ZooKeeper and for brokers, and so they wait together."""


class Answer(Protocol):
    """Answers a request, or a slice of it."""

    async def __call__(self, body: Body, *, is_slice: bool) -> Body | EncodedBody:
        """Answer."""


class AnswerError(Exception):
    """An answer that cannot be encoded: a defect of its handler, not of the request."""


class SlicedAnswers:
    """Answers large requests; those of all connections take turns."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def answer(self, key: ApiKey, header: RequestHeader, frame: bytes, answer: Answer) -> Response:
        """Answer a request slice by slice. Raises CodecError before the first slice is answered, and what `answer` raises."""
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
        assert first is not None, "a request has one slice at least"
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
            for begun in (first, second):
                waiting.append(asyncio.create_task(_run(answer, begun)))
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
        async with self._turn:
            try:
                joined.add(part)
            except CodecError as why:
                raise AnswerError(str(why)) from why
            await asyncio.sleep(0)

    async def _next(self, found: Iterator[Body | None]) -> Body | None:
        """Decode on to the next slice; None after the last."""
        async with self._turn:
            for body in found:
                await asyncio.sleep(0)
                if body is not None:
                    return body
        return None


async def _run(answer: Answer, body: Body) -> Body | EncodedBody:
    return await answer(body, is_slice=True)
