"""Encoded response bodies that several connections send without a copy for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_wire.file_slice import FileResponse


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Position of the main array in a body."""

    count: int
    count_offset: int
    """Bytes before the array's count."""
    elements_offset: int
    """Bytes before the first element, all of them in the first piece."""
    trailing_bytes: int
    """Bytes after the last element, all of them in the last piece."""


@dataclass(frozen=True, eq=False)
class EncodedBody:
    """Body of a response, in pieces.

    A body of one piece belongs to its response. The pieces of a longer body may be shared by many responses. The component that
    creates such bodies limits their number, so a connection does not count them as its own memory.
    """

    pieces: Sequence[bytes]
    array: ArrayPlace | None = None
    """Set if the body may become a part of a larger one."""

    @property
    def byte_count(self) -> int:
        """Length of the body in bytes."""
        return sum(map(len, self.pieces))


class PiecewiseResponse:
    """Response frame whose body is written piece by piece from shared memory."""

    __slots__ = ("_body_bytes", "body", "header")

    def __init__(self, header: bytes, body: EncodedBody) -> None:
        self.header = header
        self.body = body
        self._body_bytes = body.byte_count

    def __len__(self) -> int:
        return len(self.header) + self._body_bytes

    def chunks(self, max_bytes: int) -> Iterator[bytes | memoryview]:
        """Yield the frame in chunks of at most `max_bytes`; those of the body are views."""
        yield self.header
        for piece in self.body.pieces:
            view = memoryview(piece)
            for begin in range(0, len(view), max_bytes):
                yield view[begin : begin + max_bytes]


Response = bytes | PiecewiseResponse | FileResponse
"""A response frame without its size."""


def framed(header: bytes, body: EncodedBody) -> Response:
    """Return the response frame of a header and a body."""
    if len(body.pieces) <= 1:
        return b"".join((header, *body.pieces))
    return PiecewiseResponse(header, body)
