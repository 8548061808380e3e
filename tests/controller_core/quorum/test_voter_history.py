"""History of voter sets: the latest record counts, committed or not (Kafka's VoterSetHistoryTest)."""

from hypothesis import given
from hypothesis import strategies as st

from controller_core.quorum.batches import KRaftVersionRecord, VotersRecord, control_batch
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import ReplicaKey, Voter, VoterSet

STATIC = VoterSet.of([Voter(ReplicaKey(9))])
OFFSETS = st.lists(st.integers(0, 30), max_size=6, unique=True).map(sorted)


def voters_of(offset: int) -> VoterSet:
    """Return the voter set of the record at an offset: each has its own."""
    return VoterSet.of([Voter(ReplicaKey(offset))])


def history_of(offsets: list[int]) -> VoterHistory:
    """Return the history with a voter set at each offset."""
    return VoterHistory(STATIC).append(control_batch(offset, 1, VotersRecord(voters_of(offset))) for offset in offsets)


@given(OFFSETS, st.integers(0, 31))
def test_a_truncation_brings_the_voters_before_it_back(offsets: list[int], end_offset: int) -> None:
    """A follower whose uncommitted change is truncated counts the old majority again."""
    before = [offset for offset in offsets if offset < end_offset]

    assert history_of(offsets).truncate(end_offset) == history_of(before)
    assert history_of(before).voters == (voters_of(before[-1]) if before else STATIC)


@given(OFFSETS, st.integers(0, 31), st.integers(0, 31))
def test_a_deleted_beginning_changes_no_later_answer(offsets: list[int], start_offset: int, offset: int) -> None:
    """The voters that count at the start of the log stay known."""
    whole = history_of(offsets)
    kept = whole.forget_before(start_offset)

    assert kept.voters == whole.voters
    assert kept.voters_at(max(start_offset, offset)) == whole.voters_at(max(start_offset, offset))
    assert sum(entry.offset <= start_offset for entry in kept.voter_sets) <= 1


@given(OFFSETS, st.integers(-1, 31))
def test_the_voters_of_a_snapshot_are_those_at_its_end(offsets: list[int], offset: int) -> None:
    """The configured voters are in no snapshot."""
    before = [one for one in offsets if one <= offset]

    assert history_of(offsets).voters_at(offset) == (voters_of(before[-1]) if before else None)


def test_records_of_one_batch_have_offsets_of_their_own() -> None:
    """The first batch of an epoch may have a version and the voters behind the leader."""
    batch = control_batch(10, 1, KRaftVersionRecord(1), VotersRecord(voters_of(1)))
    history = VoterHistory(STATIC).append([batch])

    assert (history.kraft_version, history.voters, history.voters_offset) == (1, voters_of(1), 11)
    assert history.truncate(11).voters == STATIC
    assert history.truncate(11).kraft_version == 1
    assert history.truncate(10).kraft_version == 0


def test_a_snapshot_replaces_everything_but_the_configured_voters() -> None:
    """Also by nothing: a snapshot at kraft.version 0 has no voters."""
    history = history_of([5])

    loaded = history.from_snapshot(20, voters_of(1), 1)
    assert (loaded.voters_offset, [loaded.kraft_version_at(offset) for offset in (18, 19)]) == (19, [0, 1])
    assert history.from_snapshot(20, None, 0).voters == STATIC


def test_the_voters_of_the_formatting_count_from_before_the_first_record_on() -> None:
    """VoterSetHistoryTest.testBootstrapAddAt: the bootstrap snapshot ends at offset 0."""
    history = VoterHistory().from_snapshot(0, voters_of(1), 1)
    added = history.append([control_batch(100, 1, VotersRecord(voters_of(2)))])

    assert (history.voters_offset, history.voters) == (-1, voters_of(1))
    assert [history.voters_at(offset) for offset in (-2, -1, 99)] == [None, voters_of(1), voters_of(1)]
    assert [added.voters_at(offset) for offset in (-1, 99, 100)] == [voters_of(1), voters_of(1), voters_of(2)]


def test_a_record_may_name_any_voters() -> None:
    """VoterSetHistoryTest.testAddAtNonOverlapping: a follower may have lacked records between, which a snapshot replaced."""
    one, other = (VoterSet.of(Voter(ReplicaKey(node_id)) for node_id in ids) for ids in ((1, 2, 3), (7, 8)))
    history = VoterHistory().append([control_batch(5, 1, VotersRecord(one)), control_batch(9, 1, VotersRecord(other))])

    assert (history.voters, history.voters_at(8)) == (other, one)


def test_the_record_of_a_later_level_counts_from_its_offset_on() -> None:
    """KRaftControlRecordStateMachineTest.testTrimPrefixTo: the level stays known where the log begins behind its record."""
    history = VoterHistory().append(
        [control_batch(4, 1, KRaftVersionRecord(1)), control_batch(6, 1, VotersRecord(STATIC))]
    )
    kept = history.forget_before(6)

    assert [history.kraft_version_at(offset) for offset in (3, 4, 6)] == [0, 1, 1]
    assert (kept.kraft_version, kept.kraft_version_at(6), kept.voters_at(6)) == (1, 1, STATIC)
    assert history.truncate(4) == VoterHistory()
