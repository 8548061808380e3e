"""Decoding of a large request in slices: its main array is read a few elements at a time, and never held as a whole.

    frame ──first pass: check and count, keep nothing──► the fields around the array
          ──second pass────────────────────────────────► a body with the first elements, a body with the next, …

The array may be nested (`topics.partitions`): each slice then repeats the topic. The first pass checks the whole request, so a
request that is malformed at its end has no effect. joined_response.py encodes the response.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kafka_wire import schema
from kafka_wire.api import Body
from kafka_wire.compiler import DECODE_FAILURES, compiled
from kafka_wire.failures import CodecError, TooManyElements
from kafka_wire.plain_decoder import fresh_default, least_bytes
from kafka_wire.schema import Field
from kafka_wire.source_decoder import Module, element_units
from kafka_wire.varints import read_uvarint

SLICE_ELEMENTS = 250
"""Elements of a slice. The slowest handler takes 30 µs for one, so a slice takes about 8 ms."""

SLICE_UNITS = 10_000
"""Limit of the decoding cost of a slice (element_units): 2 ms. An element that costs more is a slice by itself."""

ELEMENT_UNITS = 150_000
"""Limit of the decoding cost of one element: at most 25 ms. A topic with 10,000 partitions of 3 assigned replicas costs 130,000."""

GROUP_UNITS = 40
"""Cost of the element around a nested array, without that array: three calls, 5 µs."""

STEP_ELEMENTS = 32
"""Elements that one call reads: few enough for the units of a slice, enough to make the calls cheap."""

_COUNT = struct.Struct(">i")

Weigh = Callable[[Any], int]
Reader = Callable[[bytes, int, int], tuple[list[Any], int]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive elements; if the array is nested, all of one topic (`group`)."""

    group: Body | None
    elements: list[Any]
    units: int
    size: int = 1
    """Count of elements for the limit of a slice."""


def slices(
    name: str,
    version: int,
    path: tuple[str, ...],
    frame: bytes,
    position: int,
    *,
    max_elements: int,
    unique: str = "",
    weigh: Weigh | None = None,
) -> Iterator[Body | None]:
    """Yield the bodies that together are a request, and None in between at points where the caller may yield control.

    `path` names the main array, or the main array and the array in its elements. A request of more than one slice must have distinct
    `unique` keys. `weigh` returns how many elements one counts for in a slice; without it, each counts for 1.
    Raises CodecError (TooManyElements is one), always before the first body.
    """
    layout = _layout(name, version, path)
    try:
        yield from layout.bodies(frame, _Walk(position, 0, max_elements, weigh), unique)
    except TooManyElements as why:
        raise TooManyElements(why.reason, message=name, version=version) from None
    except CodecError:
        raise
    except DECODE_FAILURES as failure:
        raise CodecError(f"cannot be decoded: {failure!r}", message=name, version=version) from failure


@dataclass(frozen=True, slots=True)
class _Layout:
    """Readers of one version of one message, split at its main array."""

    path: tuple[str, ...]
    flexible: bool
    nullable: bool
    budget: list[int]
    head: Reader
    tail: Reader
    group_head: Reader | None
    group_tail: Reader | None
    elements: Reader
    group_defaults: Body
    units: int
    least: tuple[int, int]
    """Minimum size in bytes of an element of the outer and of the inner array."""

    def bodies(self, frame: bytes, walk: "_Walk", unique: str) -> Iterator[Body | None]:
        head, position = self._read(self.head, frame, walk.position)
        count, position = self._count(frame, position, self.least[0])
        if count is None:
            tail, _ = self._read(self.tail, frame, position)
            yield {**head, self.path[0]: None, **tail}
            return
        whole, again = _Slice(), replace(walk, position=position, count=count)
        walk = replace(again)
        fits, names, repeated = True, set[Any](), ""
        since = 0
        for piece in self._pieces(frame, walk):
            since += piece.units
            if unique:
                for element in piece.elements:
                    key = element[unique] if isinstance(element, dict) else element
                    repeated = key if key is not None and key in names else repeated
                    names.add(key)
            if fits and not (fits := whole.takes(piece)):
                whole = _Slice()
            if fits:
                whole.add(piece)
            if since >= SLICE_UNITS:
                since = 0
                yield None
        tail, _ = self._read(self.tail, frame, walk.position)
        around = {**head, **tail}
        if fits:
            yield self._body(around, whole)
            return
        if repeated:
            raise CodecError(
                f"{unique} {repeated[:40]!r} occurs more than once in a request of more than {SLICE_ELEMENTS} elements"
            )
        yield from self._second_pass(frame, again, around)

    def _second_pass(self, frame: bytes, walk: "_Walk", around: Body) -> Iterator[Body | None]:
        part = _Slice()
        for piece in self._pieces(frame, walk):
            if not part.takes(piece):
                yield self._body(around, part)
                part = _Slice()
            part.add(piece)
        yield self._body(around, part)

    def _body(self, around: Body, part: "_Slice") -> Body:
        if self.group_head is None:
            return {**around, self.path[0]: [element for piece in part.pieces for element in piece.elements]}
        groups: list[Body] = []
        last: Body | None = None
        for piece in part.pieces:
            assert piece.group is not None
            if piece.group is not last:
                last = piece.group
                groups.append({**self.group_defaults, **last, self.path[1]: []})
            groups[-1][self.path[1]].extend(piece.elements)
        return {**around, self.path[0]: groups}

    def _pieces(self, frame: bytes, walk: "_Walk") -> Iterator[_Piece]:
        """Read all elements; afterwards `walk.position` is their end."""
        if self.group_head is None or self.group_tail is None:
            walk.charge(walk.count)
            yield from self._run(frame, walk, walk.count, None)
            return
        for _ in range(walk.count):
            group, walk.position = self._read(self.group_head, frame, walk.position)
            count, walk.position = self._count(frame, walk.position, self.least[1])
            walk.charge(max(count or 0, 1))
            if not count:
                yield _Piece(group, [], GROUP_UNITS)
            else:
                yield from self._run(frame, walk, count, group, GROUP_UNITS)
            _, walk.position = self._read(self.group_tail, frame, walk.position)

    def _run(self, frame: bytes, walk: "_Walk", count: int, group: Body | None, extra: int = 0) -> Iterator[_Piece]:
        most = step = STEP_ELEMENTS if walk.weigh is None else 1
        while count:
            number = min(step, count)
            allowed = self.budget[0] = ELEMENT_UNITS if number == 1 else SLICE_UNITS
            try:
                elements, walk.position = self.elements(frame, walk.position, number)
            except TooManyElements:
                if number == 1:
                    raise
                step = 1  # some of these are large: read one at a time
                continue
            units = allowed - self.budget[0] + number * self.units + extra
            yield _Piece(group, elements, units, number if walk.weigh is None else walk.weigh(elements[0]))
            extra = 0
            count -= number
            step = min(step * 2, most)

    def _read(self, read: Reader, frame: bytes, position: int) -> tuple[Body, int]:
        self.budget[0] = SLICE_UNITS
        (body,), position = read(frame, position, 1)
        return body, position

    def _count(self, frame: bytes, position: int, least: int) -> tuple[int | None, int]:
        """Read an array's count, and compare it with the remaining bytes; None for null."""
        if self.flexible:
            count, position = read_uvarint(frame, position)
            count -= 1
        else:
            (count,) = _COUNT.unpack_from(frame, position)
            position += _COUNT.size
        if count == -1 and self.nullable:
            return None, position
        if not 0 <= count * least <= len(frame) - position:
            raise CodecError(f"{count} elements do not fit into the remaining {len(frame) - position} bytes")
        return count, position


@dataclass(slots=True)
class _Walk:
    """State of a pass: its position, and how many more elements it allows."""

    position: int
    count: int
    left: int
    weigh: Weigh | None

    def charge(self, elements: int) -> None:
        self.left -= elements
        if self.left < 0:
            raise TooManyElements("has more elements than the limit of its API")


class _Slice:
    """Pieces of one slice."""

    __slots__ = ("elements", "pieces", "units")

    def __init__(self) -> None:
        self.pieces: list[_Piece] = []
        self.elements = self.units = 0

    def takes(self, piece: _Piece) -> bool:
        """Return whether a piece fits into the slice; the first one always does."""
        if not self.pieces:
            return True
        return self.elements + piece.size <= SLICE_ELEMENTS and self.units + piece.units <= SLICE_UNITS

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.elements += piece.size
        self.units += piece.units


@cache
def _layout(name: str, version: int, path: tuple[str, ...]) -> _Layout:
    definition = schema.definition(name, version)
    flexible = version in definition.flexible
    module = Module(version, flexible, bounded=True)
    outer, before, after = _split(definition.fields, path[0])
    head, tail = module.add_struct(before, ends=False), module.add_struct(after)
    group_head = group_tail = None
    array, defaults = outer, {}
    if len(path) > 1:
        array, inner_before, inner_after = _split(outer.fields, path[1])
        assert not any(version in field.versions for field in inner_after), f"{name} {version}: fields after {path[1]}"
        defaults = {field.key: fresh_default(field) for field in inner_after}
        group_head, group_tail = module.add_struct(inner_before, ends=False), module.add_struct(inner_after)
    element = array.elements()
    wrapped = element.kind != "struct"
    number = (
        module.add_struct((replace(element, key="one"),), ends=False) if wrapped else module.add_struct(element.fields)
    )
    space = compiled(f"<slices of {name} v{version}>", "\n\n".join(module.functions), module.namespace)
    readers: list[Reader | None] = [
        None if part is None else space[f"read_{part}"] for part in (head, tail, group_head, group_tail, number)
    ]
    assert readers[0] is not None
    assert readers[1] is not None
    assert readers[4] is not None
    return _Layout(
        path,
        flexible,
        version in outer.nullable,
        space["budget"],
        readers[0],
        readers[1],
        readers[2],
        readers[3],
        _unwrapped(readers[4]) if wrapped else readers[4],
        defaults,
        element_units(element),
        (least_bytes(outer.elements(), version, flexible), least_bytes(element, version, flexible)),
    )


def _split(fields: tuple[Field, ...], key: str) -> tuple[Field, tuple[Field, ...], tuple[Field, ...]]:
    """Return a field, the fields that are sent before it and those after it: tagged fields come last."""
    (index,) = (index for index, field in enumerate(fields) if field.key == key)
    before = tuple(field for field in fields[:index] if field.tag is None)
    return fields[index], before, (*(field for field in fields[:index] if field.tag is not None), *fields[index + 1 :])


def _unwrapped(read: Reader) -> Reader:
    def elements(frame: bytes, position: int, count: int) -> tuple[list[Any], int]:
        found, position = read(frame, position, count)
        return [element["one"] for element in found], position

    return elements
