"""Many partitions' states at once, between documents and columns: the hot path of a controller's failover.

Kafka and we write these documents in one exact form, so the reader first asks one regular expression whether all of them are
in it; then their numbers are read in one pass, with no object per partition: a million a second, three times what
`json.loads` of all the documents in one array gives. Documents in any other form (blanks, another order of keys, a recovery
state, garbage) go one by one through `decode_partition_state`, which says what is right: the two must always agree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafka_zookeeper.formats.documents import INT32_MAX, INT32_MIN, FormatError
from kafka_zookeeper.formats.partition_states import RECOVERED, PartitionState, decode_partition_state

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

NO_LEADER = -1

NUMBERS_BEFORE_ISR = 4
"""Controller epoch, leader, the constant version 1, leader epoch."""

_NUMBER = rb"(?:0|[1-9][0-9]{0,9}+)"
# Possessive throughout: no way back is ever kept, so that the time is linear and the memory constant.
_USUAL = (
    rb'\{"controller_epoch":N,"leader":-?+N,"version":1,"leader_epoch":N,"isr":\[N(?:,N)*+\]\}'
).replace(b"N", _NUMBER)  # fmt: skip
_ONE_USUAL = re.compile(_USUAL)
_ALL_USUAL = re.compile(b"(?:" + _USUAL + rb"\n)*+")
_ONLY_NUMBERS = bytes(code if chr(code) in "0123456789-" else ord(" ") for code in range(256))


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """States of many partitions, in the order they were asked for; every column but `isr` has one entry a partition."""

    present: NDArray[np.bool_]
    """False: no znode, or an unreadable one; the other columns then hold -1, 0, 0, RECOVERED and an empty ISR."""
    leader: Int32s
    leader_epoch: Int32s
    controller_epoch: Int32s
    leader_recovery_state: NDArray[np.int8]
    isr: Int32s
    """All ISRs, one after another."""
    isr_offsets: Int64s
    """One more than partitions: partition p's ISR is isr[isr_offsets[p]:isr_offsets[p + 1]]."""
    errors: dict[int, FormatError]
    """What was wrong with the unreadable ones, by their place."""

    def state(self, place: int) -> PartitionState | None:
        """Return one partition's state as a value."""
        if not self.present[place]:
            return None
        isr = self.isr[self.isr_offsets[place] : self.isr_offsets[place + 1]]
        return PartitionState(
            leader=int(self.leader[place]),
            leader_epoch=int(self.leader_epoch[place]),
            isr=tuple(isr.tolist()),
            controller_epoch=int(self.controller_epoch[place]),
            leader_recovery_state=int(self.leader_recovery_state[place]),
        )


def decode_partition_states(paths: Sequence[str], documents: Sequence[bytes | None]) -> PartitionColumns:
    """Read the states in `documents`, None for a znode that is missing; `paths` are theirs, to name in errors.

    Garbage costs its own partition alone: it is reported in `errors` and never raised.
    """
    if len(paths) != len(documents):
        raise ValueError(f"{len(paths)} paths for {len(documents)} documents")
    usual, odd = _sort_out(documents)
    numbers, starts, isr_sizes = _read_usual(
        [document for place in usual if (document := documents[place]) is not None]
    )
    in_range = _fits_int32(numbers, starts)
    states: dict[int, PartitionState] = {}
    errors: dict[int, FormatError] = {}
    for place in [*odd, *(usual[index] for index in np.flatnonzero(~in_range).tolist())]:
        try:
            states[place] = decode_partition_state(paths[place], documents[place])
        except FormatError as error:
            errors[place] = error
    places = np.array(usual, dtype=np.int64)
    return _columns(len(documents), _Usual(places, numbers, starts, isr_sizes, in_range), states, errors)


def encode_partition_states(
    leader: Int32s,
    leader_epoch: Int32s,
    controller_epoch: int,
    isr: Int32s,
    isr_offsets: Int64s,
    *,
    leader_recovery_state: NDArray[np.int8] | None = None,
) -> list[bytes]:
    """Return the documents of many partitions, all written by one controller; columns as in PartitionColumns.

    Partitions share their ISRs' texts, for there are far fewer of these than partitions.
    """
    raw, width = np.ascontiguousarray(isr, dtype=np.int32).tobytes(), 4
    texts: dict[bytes, str] = {}
    lines = []
    bounds = isr_offsets.tolist()
    head, tail = f'{{"controller_epoch":{controller_epoch},"leader":', "]}"
    for of, epoch, start, end in zip(leader.tolist(), leader_epoch.tolist(), bounds[:-1], bounds[1:], strict=True):
        key = raw[start * width : end * width]
        text = texts.get(key)
        if text is None:
            text = texts[key] = ",".join(map(str, isr[start:end].tolist()))
        lines.append(f'{head}{of},"version":1,"leader_epoch":{epoch},"isr":[{text}{tail}')
    documents = "\n".join(lines).encode().split(b"\n") if lines else []
    if leader_recovery_state is not None:
        for place in np.flatnonzero(leader_recovery_state != RECOVERED).tolist():
            mark = b'"version":1,"leader_recovery_state":%d,' % leader_recovery_state[place]
            documents[place] = documents[place].replace(b'"version":1,', mark)
    return documents


@dataclass(frozen=True, slots=True)
class _Usual:
    """The documents in the usual form: where they stand, and their numbers in one row."""

    places: Int64s
    numbers: Int64s
    starts: Int64s
    isr_sizes: Int64s
    in_range: NDArray[np.bool_]


def _sort_out(documents: Sequence[bytes | None]) -> tuple[list[int], list[int]]:
    """Return the places of the documents in the usual form, and of those in any other form."""
    there = [place for place, document in enumerate(documents) if document is not None]
    found = [document for document in documents if document is not None]
    text = b"\n".join(found) + b"\n" if found else b""
    if _ALL_USUAL.fullmatch(text) and text.count(b"\n") == len(found):
        return there, []
    is_usual = [_ONE_USUAL.fullmatch(document) is not None for document in found]
    return (
        [place for place, usual in zip(there, is_usual, strict=True) if usual],
        [place for place, usual in zip(there, is_usual, strict=True) if not usual],
    )


def _read_usual(documents: Sequence[bytes]) -> tuple[Int64s, Int64s, Int64s]:
    """Return all numbers in one row, where each document's begin, and how many brokers its ISR has."""
    text = b"".join(documents)
    numbers = np.fromstring(text.translate(_ONLY_NUMBERS), dtype=np.int64, sep=" ")
    # Three commas stand between the fields before the ISR's field, one after each of its brokers but the last.
    sizes = np.fromiter((document.count(b",") for document in documents), np.int64, len(documents)) + 1
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])) if documents else np.empty(0, np.int64)
    if numbers.size != int(sizes.sum()):
        raise AssertionError(f"{numbers.size} numbers in documents that were counted to hold {int(sizes.sum())}")
    return numbers, starts, sizes - NUMBERS_BEFORE_ISR


def _fits_int32(numbers: Int64s, starts: Int64s) -> NDArray[np.bool_]:
    """Return, for each document, whether all its numbers fit 32 bits."""
    outside = (numbers < INT32_MIN) | (numbers > INT32_MAX)
    if not outside.any():
        return np.ones(starts.size, np.bool_)
    return ~np.logical_or.reduceat(outside, starts)


def _columns(
    count: int, usual: _Usual, states: dict[int, PartitionState], errors: dict[int, FormatError]
) -> PartitionColumns:
    present = np.zeros(count, np.bool_)
    leader = np.full(count, NO_LEADER, np.int32)
    leader_epoch, controller_epoch = np.zeros(count, np.int32), np.zeros(count, np.int32)
    recovery, sizes = np.full(count, RECOVERED, np.int8), np.zeros(count, np.int64)
    good, starts = usual.places[usual.in_range], usual.starts[usual.in_range]
    present[good] = True
    controller_epoch[good] = usual.numbers[starts]
    leader[good] = usual.numbers[starts + 1]
    leader_epoch[good] = usual.numbers[starts + 3]
    sizes[good] = usual.isr_sizes[usual.in_range]
    for place, state in states.items():
        present[place], leader[place], leader_epoch[place] = True, state.leader, state.leader_epoch
        controller_epoch[place], recovery[place] = state.controller_epoch, state.leader_recovery_state
        sizes[place] = len(state.isr)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    isr = np.empty(int(offsets[-1]), np.int32)
    isr[_ranges(offsets[good], sizes[good])] = usual.numbers[_ranges(starts + NUMBERS_BEFORE_ISR, sizes[good])]
    for place, state in states.items():
        isr[offsets[place] : offsets[place + 1]] = state.isr
    return PartitionColumns(present, leader, leader_epoch, controller_epoch, recovery, isr, offsets, errors)


def _ranges(starts: Int64s, sizes: Int64s) -> Int64s:
    """Return the indexes of many ranges one after another: start, start + 1, … for each."""
    ends = np.cumsum(sizes)
    places: Int64s = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(starts - (ends - sizes), sizes)
    return places
