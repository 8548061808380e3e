"""Plans of moves between the log directories of one broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from move_planner.log_dirs import Directory, DirectoryMove, level_log_dirs

GIB = 2**30


def volume(*replicas_gib: int, total_gib: int = 100, used_gib: int | None = None, accepts: bool = True) -> Directory:
    """A directory on a volume of its own; other files take what its replicas do not."""
    used = sum(replicas_gib) if used_gib is None else used_gib
    sizes = tuple(size * GIB for size in replicas_gib)
    return Directory(sizes, 0, total_gib * GIB, (total_gib - used) * GIB, accepts)


def test_the_fullest_volume_gives_to_the_emptiest_one() -> None:
    """At least 27.5 GiB of 60 have to move for shares that differ by 5 percent; the replica of 30 suffices, and 20 would not."""
    plan = level_log_dirs([volume(30, 20, 10), volume()])

    assert plan.moves == (DirectoryMove(0, 0, 1),)
    assert plan.is_level
    assert plan.lower_bound_bytes == 27.5 * GIB


def test_shares_count_and_not_bytes() -> None:
    """Volumes of different sizes have the same share when the larger one has more bytes."""
    assert level_log_dirs([volume(20, 20, total_gib=100), volume(80, total_gib=200)]).moves == ()


def test_directories_on_one_volume_get_no_moves_between_them() -> None:
    """Two directories of a full volume count as one; the other volume takes."""
    full = [Directory((10 * GIB,), 0, 100 * GIB, 80 * GIB), Directory((10 * GIB,), 0, 100 * GIB, 80 * GIB)]

    plan = level_log_dirs([*full, volume(total_gib=200)])

    assert [move.target for move in plan.moves] == [2]


@pytest.mark.parametrize(("total", "usable"), [(-1, -1), (100 * GIB, 60 * GIB)], ids=["unknown", "one volume"])
def test_logs_are_levelled_if_no_volume_is_known_from_another(total: int, usable: int) -> None:
    """Brokers before Kafka 3.3 report no sizes; directories of a test cluster are on one disk."""
    held = [Directory((10, 10, 10, 10), 0, total, usable), Directory((), 0, total, usable)]

    plan = level_log_dirs(held)

    assert len(plan.moves) == 2
    assert plan.is_level


def test_a_replica_that_does_not_fit_is_not_moved() -> None:
    """It is on both volumes until it is copied."""
    plan = level_log_dirs([volume(9, total_gib=10), volume(total_gib=8, used_gib=0)])

    assert plan.moves == ()
    assert not plan.is_level


def test_a_directory_that_accepts_nothing_is_only_emptied() -> None:
    """A cordoned directory (KIP-1066) gets no new replica."""
    assert level_log_dirs([volume(30, 30), volume(accepts=False)]).moves == ()
    assert level_log_dirs([volume(30, 30, accepts=False), volume()]).moves != ()


def test_of_many_replicas_hardly_more_is_copied_than_any_plan_needs() -> None:
    """Volumes of four sizes: 400 replicas of 1 to 20 GiB, most of them on the first one."""
    sizes = [1 + 7 * number % 20 for number in range(400)]
    full = Directory(tuple(size * GIB for size in sizes), 0, 5_000 * GIB, (5_000 - sum(sizes)) * GIB)

    plan = level_log_dirs([full, *(volume(total_gib=total) for total in (3_000, 2_000, 1_000))])

    copied = sum(sizes[move.replica] * GIB for move in plan.moves)
    assert plan.is_level
    assert plan.lower_bound_bytes <= copied <= plan.lower_bound_bytes * 1.01
    assert len(plan.moves) < 200


DIRECTORIES = st.lists(
    st.builds(
        lambda replicas, other, free, accepts: Directory(
            tuple(replicas), other, sum(replicas) + other + free + 1, free, accepts
        ),
        st.lists(st.integers(0, 10**12), max_size=12),
        st.integers(0, 10**12),
        st.integers(0, 10**12),
        st.booleans(),
    ),
    max_size=5,
)


@given(DIRECTORIES)
def test_no_volume_is_overfilled_and_no_replica_moves_twice(directories: list[Directory]) -> None:
    """All moves may be in progress at once. A plan that levels copies no less than the bound."""
    plan = level_log_dirs(directories)

    added = [0] * len(directories)
    for move in plan.moves:
        assert directories[move.target].accepts
        added[move.target] += directories[move.source].replica_bytes[move.replica]
    assert len({(move.source, move.replica) for move in plan.moves}) == len(plan.moves)
    assert all(size <= item.usable_bytes for size, item in zip(added, directories, strict=True))
    if plan.is_level:
        assert sum(added) >= plan.lower_bound_bytes - 1


@given(DIRECTORIES)
def test_every_move_brings_shares_closer(directories: list[Directory]) -> None:
    """The sum of squared shares, weighted by the sizes of volumes, decreases with each move."""
    sizes = {item.total_bytes for item in directories}
    moves = level_log_dirs(directories).moves if len(sizes) == len(directories) > 1 else ()

    used = [item.total_bytes - item.usable_bytes for item in directories]
    for move in moves:
        before = unevenness(used, directories)
        size = directories[move.source].replica_bytes[move.replica]
        used[move.source] -= size
        used[move.target] += size
        assert unevenness(used, directories) < before * (1 + 1e-9)


def unevenness(used: list[int], directories: list[Directory]) -> float:
    """The sum of squared shares, weighted by the sizes of volumes."""
    return sum(count * (count / item.total_bytes) for count, item in zip(used, directories, strict=True))
