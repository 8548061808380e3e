"""Moves between the log directories of one broker, so that the used shares of its volumes are alike.

Directories on one volume count as one: a move between them changes no share. If all directories of the broker are on one volume, or the
broker does not report sizes of volumes (before Kafka 3.3), the bytes of the logs in each directory are levelled instead.

All shares are brought into a band as wide as the tolerance, the one around the mean share that needs the fewest bytes. The fullest volume gives
to the emptiest one: the smallest replica that brings both into the band, else the largest one that leaves neither on its other side. Each replica moves once at most. A replica is on both volumes
until it is copied, so every move has to fit into the space that is free at the start; space that moves free is not counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

UNKNOWN_BYTES = -1
"""Size of a volume that the broker does not report."""

SAME_VOLUME_BYTES = 16 * 2**20
"""Directories of volumes of the same size are on one volume if their free space differs by less: other files grow between two readings."""

TOLERANCE = 0.05
"""Allowed difference between the used shares of two volumes, as of the loads of brokers (request.TOLERANCE)."""


HALVINGS = 40
"""Steps of the search for the band: its place is then exact to a byte of any volume."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A log directory: bytes of the replicas that may move, of other logs, and of its volume. `accepts`: whether replicas may be moved to it."""

    replica_bytes: tuple[int, ...]
    other_bytes: int = 0
    total_bytes: int = UNKNOWN_BYTES
    usable_bytes: int = UNKNOWN_BYTES
    accepts: bool = True


@dataclass(frozen=True, slots=True)
class DirectoryMove:
    """A replica, by its index in the directory `source`, moves to the directory `target`, by their indices in the request."""

    source: int
    replica: int
    target: int


@dataclass(frozen=True, slots=True)
class DirectoryPlan:
    """Moves in the order in which they were found, what any plan must copy, and the remaining difference of shares."""

    moves: tuple[DirectoryMove, ...] = ()
    lower_bound_bytes: int = 0
    spread: float = 0.0

    @property
    def is_level(self) -> bool:
        """Whether the shares are within the tolerance."""
        return self.spread <= TOLERANCE


@dataclass(slots=True)
class _Bin:
    """Directories whose bytes count together; `replicas` are (bytes, directory, index) of those that may move, ascending."""

    directories: tuple[int, ...]
    capacity: int
    used: int
    volume: int
    replicas: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.used / self.capacity


def level_log_dirs(directories: Sequence[Directory]) -> DirectoryPlan:
    """Return the moves that level the directories of one broker.

    >>> full, empty = Directory((30, 20, 10), total_bytes=100, usable_bytes=40), Directory((), total_bytes=200, usable_bytes=200)
    >>> level_log_dirs([full, empty]).moves
    (DirectoryMove(source=0, replica=0, target=1), DirectoryMove(source=0, replica=2, target=1))
    """
    bins, free = _bins(directories)
    moves: list[DirectoryMove] = []
    band, bound = _band(bins)
    while (found := _next_move(bins, free, directories, band)) is not None:
        source, target, place = found
        size, directory, index = source.replicas.pop(place)
        source.used -= size
        target.used += size
        free[target.volume] -= size
        moves.append(DirectoryMove(directory, index, _emptiest(target, directories)))
    return DirectoryPlan(tuple(moves), bound, _spread(bins))


def _next_move(
    bins: Sequence[_Bin], free: Sequence[float], directories: Sequence[Directory], band: tuple[float, float]
) -> tuple[_Bin, _Bin, int] | None:
    """Return giver, taker and the place of the replica among the giver's."""
    ordered = sorted(bins, key=lambda item: item.share)
    for source in reversed(ordered):
        for target in ordered:
            if source.share - target.share <= TOLERANCE:
                break
            if any(directories[index].accepts for index in target.directories):
                place = _place(source, target, free[target.volume], band)
                if place is not None:
                    return source, target, place
    return None


def _place(source: _Bin, target: _Bin, free: float, band: tuple[float, float]) -> int | None:
    """Return the place of the replica to move; None if none fits and brings the shares of both closer."""
    lower, upper = band
    wanted = max(source.used - upper * source.capacity, lower * target.capacity - target.used)
    most = min(source.used - lower * source.capacity, upper * target.capacity - target.used, free)
    sizes = source.replicas
    sufficient = bisect_left(sizes, wanted, key=lambda item: item[0])
    if sufficient < len(sizes) and sizes[sufficient][0] <= most:
        return sufficient
    largest = bisect_right(sizes, most, key=lambda item: item[0]) - 1
    if largest >= 0:
        return largest
    equal = (source.share - target.share) / (1 / source.capacity + 1 / target.capacity)
    return 0 if sizes and sizes[0][0] < min(2 * equal, free + 1) else None


def _bins(directories: Sequence[Directory]) -> tuple[list[_Bin], list[float]]:
    """Return what is levelled, and the free bytes of each volume."""
    volumes = list(_volumes(directories))
    logs = [sum(item.replica_bytes) + item.other_bytes for item in directories]
    if len(volumes) > 1:
        sizes = [directories[held[0]] for held in volumes]
        bins = [
            _Bin(held, size.total_bytes, size.total_bytes - size.usable_bytes, number)
            for number, (held, size) in enumerate(zip(volumes, sizes, strict=True))
        ]
        free: list[float] = [float(size.usable_bytes) for size in sizes]
    else:
        bins = [_Bin((index,), max(1, sum(logs)), held, 0) for index, held in enumerate(logs)]
        is_known = bool(volumes) and directories[0].total_bytes > 0
        free = [float(directories[0].usable_bytes) if is_known else float("inf")]
    for item in bins:
        held = [(size, number, index) for number in item.directories for index, size in _sizes(directories[number])]
        item.replicas = sorted(held)
    return bins, free


def _volumes(directories: Sequence[Directory]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the directories of each volume; all of them together if a size is unknown."""
    if any(item.total_bytes <= 0 or item.usable_bytes < 0 for item in directories):
        yield tuple(range(len(directories)))
        return
    order = sorted(
        range(len(directories)), key=lambda index: (directories[index].total_bytes, directories[index].usable_bytes)
    )
    held: list[int] = []
    for index in order:
        if held and not _is_same_volume(directories[held[-1]], directories[index]):
            yield tuple(sorted(held))
            held = []
        held.append(index)
    if held:
        yield tuple(sorted(held))


def _is_same_volume(one: Directory, other: Directory) -> bool:
    return one.total_bytes == other.total_bytes and abs(one.usable_bytes - other.usable_bytes) < SAME_VOLUME_BYTES


def _sizes(directory: Directory) -> Iterator[tuple[int, int]]:
    """Yield the replicas whose move changes something."""
    return ((index, size) for index, size in enumerate(directory.replica_bytes) if size > 0)


def _emptiest(target: _Bin, directories: Sequence[Directory]) -> int:
    """Return the directory of a volume with the fewest bytes of logs."""
    accepting = [index for index in target.directories if directories[index].accepts]
    return min(
        accepting, key=lambda index: (sum(directories[index].replica_bytes) + directories[index].other_bytes, index)
    )


def _band(bins: Sequence[_Bin]) -> tuple[tuple[float, float], int]:
    """Return the ends of the band that needs the fewest bytes, and these bytes: no plan that keeps the tolerance copies less.

    The higher the band, the less the fuller volumes have to give, and the more the emptier ones have to take.
    """
    capacity = sum(item.capacity for item in bins)
    mean = sum(item.used for item in bins) / capacity if capacity else 0.0
    low, high = 0.0, TOLERANCE
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _above(bins, mean + middle) > _below(bins, mean + middle - TOLERANCE):
            low = middle
        else:
            high = middle
    bound = max(_above(bins, mean + high), _below(bins, mean + low - TOLERANCE)) if len(bins) > 1 else 0.0
    return (mean + high - TOLERANCE, mean + high), int(bound)


def _above(bins: Sequence[_Bin], share: float) -> float:
    return sum(max(0.0, item.used - share * item.capacity) for item in bins)


def _below(bins: Sequence[_Bin], share: float) -> float:
    return sum(max(0.0, share * item.capacity - item.used) for item in bins)


def _spread(bins: Sequence[_Bin]) -> float:
    shares = [item.share for item in bins]
    return max(shares) - min(shares) if shares else 0.0
