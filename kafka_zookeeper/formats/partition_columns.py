"""Column codec of partition states, the hot path of a controller failover.

Kafka and Steward write these documents in one exact form. The decoder checks by one regular expression whether all of them have it,
and then reads their numbers in one pass, without an object per partition: a million a second, three times as many as
`json.loads` of all documents in one array. Documents in any other form (blanks, another key order, a recovery state, garbage) are
decoded one at a time by `decode_partition_state`, which is the reference: both must always agree.
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
_USUAL = (
    rb'\{"controller_epoch":N,"leader":-?+N,"version":1,"leader_epoch":N,"isr":\[N(?:,N)*+\]\}'
).replace(b"N", _NUMBER)  # fmt: skip
"""Only possessive quantifiers: without backtracking, the time is linear and the memory constant."""
_ONE_USUAL = re.compile(_USUAL)
_ALL_USUAL = re.compile(b"(?:" + _USUAL + rb"\n)*+")
_ONLY_NUMBERS = bytes(code if chr(code) in "0123456789-" else ord(" ") for code in range(256))


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """States of many partitions, in the order of the request; every column except `isr` has one entry per partition."""

    present: NDArray[np.bool_]
    """False for a missing or unreadable znode; the other columns then contain -1, 0, 0, RECOVERED and an empty ISR."""
    leader: Int32s
    leader_epoch: Int32s
    controller_epoch: Int32s
    leader_recovery_state: NDArray[np.int8]
    isr: Int32s
    """All ISRs, concatenated."""
    isr_offsets: Int64s
    """One entry more than there are partitions: partition p's ISR is isr[isr_offsets[p]:isr_offsets[p + 1]]."""
    errors: dict[int, FormatError]
    """Errors of the unreadable znodes, by index."""

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
    """Decode the states in `documents`, None for a missing znode; `paths` are their paths, for errors.

    An invalid document only affects its own partition: it is reported in `errors` and never raised.
    """
    if len(paths) != len(documents):
        raise ValueError(f"{len(paths)} paths for {len(documents)} documents")
    usual, others = _split_by_form(documents)
    numbers, starts, isr_sizes = _read_usual(
        [document for place in usual if (document := documents[place]) is not None]
    )
    in_range = _fits_int32(numbers, starts)
    states: dict[int, PartitionState] = {}
    errors: dict[int, FormatError] = {}
    for place in [*others, *(usual[index] for index in np.flatnonzero(~in_range).tolist())]:
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
    """Return the documents of many partitions of one controller; columns as in PartitionColumns.

    The texts of ISRs are cached: there are far fewer different ISRs than partitions.
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
    """Documents in the usual form: their indexes, and their numbers in one array."""

    places: Int64s
    numbers: Int64s
    starts: Int64s
    isr_sizes: Int64s
    in_range: NDArray[np.bool_]


def _split_by_form(documents: Sequence[bytes | None]) -> tuple[list[int], list[int]]:
    """Return the indexes of the documents in the usual form, and of those in any other form."""
    present = [place for place, document in enumerate(documents) if document is not None]
    found = [document for document in documents if document is not None]
    text = b"\n".join(found) + b"\n" if found else b""
    if _ALL_USUAL.fullmatch(text) and text.count(b"\n") == len(found):
        return present, []
    is_usual = [_ONE_USUAL.fullmatch(document) is not None for document in found]
    return (
        [place for place, usual in zip(present, is_usual, strict=True) if usual],
        [place for place, usual in zip(present, is_usual, strict=True) if not usual],
    )


def _read_usual(documents: Sequence[bytes]) -> tuple[Int64s, Int64s, Int64s]:
    """Return all numbers in one array, the start of each document's numbers, and the size of its ISR."""
    text = b"".join(documents)
    numbers = np.fromstring(text.translate(_ONLY_NUMBERS), dtype=np.int64, sep=" ")
    # Three commas separate the fields before the ISR, and one follows each of its brokers except the last.
    sizes = np.fromiter((document.count(b",") for document in documents), np.int64, len(documents)) + 1
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])) if documents else np.empty(0, np.int64)
    if numbers.size != int(sizes.sum()):
        raise AssertionError(f"found {numbers.size} numbers in documents, expected {int(sizes.sum())}")
    return numbers, starts, sizes - NUMBERS_BEFORE_ISR


def _fits_int32(numbers: Int64s, starts: Int64s) -> NDArray[np.bool_]:
    """Return for each document whether all its numbers fit into 32 bits."""
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
    """Return the concatenated indexes of many ranges: start, start + 1, … for each."""
    ends = np.cumsum(sizes)
    places: Int64s = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(starts - (ends - sizes), sizes)
    return places
