"""Files of a node: what is read at the start and for other nodes, when a file is gone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller_core.quorum.batches import KRaftVersionRecord, Position, VotersRecord, control_batch
from controller_core.quorum.ready import Appended
from controller_core.quorum.voters import VoterSet
from controller_core.shell.quorum.metadata_log import MetadataLog
from controller_core.shell.quorum.storage import Storage
from kafka_log.errors import LogError
from kafka_log.format.names import SnapshotId, snapshot_name
from kafka_log.format.roll import LogSettings
from tests.controller_core.quorum import nodes
from tests.kafka_log.batches import batch, fast_folder

SNAPSHOT = SnapshotId(5, 1)


@pytest.fixture
def missing() -> Iterator[tuple[Storage, Path]]:
    """The files of a node, and the path of its only snapshot, which was deleted."""
    with fast_folder() as folder:
        log = MetadataLog(folder / "__cluster_metadata-0")
        log.append_as_leader(batch(0, records=5), 1)
        writer = log.create_snapshot(SNAPSHOT, high_watermark=5)
        assert writer is not None
        log.finish_snapshot(writer)
        path = log.folder / snapshot_name(SNAPSHOT)
        path.unlink()
        storage = Storage(log, segment_bytes=LogSettings().segment_bytes)
        yield storage, path
        storage.close()


@pytest.mark.parametrize(
    "read",
    [
        lambda storage: storage.read_snapshot(Position(*SNAPSHOT), 0, 100),
        lambda storage: storage.voter_history(VoterSet()),
    ],
    ids=["for another node", "at the start"],
)
def test_a_missing_snapshot_is_named(missing: tuple[Storage, Path], read: Callable[[Storage], object]) -> None:
    """Without it the node does not know its voters, and cannot send what it has announced to a follower."""
    storage, path = missing

    with pytest.raises(LogError) as raised:
        read(storage)
    assert str(raised.value) == f"Snapshot {path} is missing."


def test_the_voters_at_the_start_are_those_of_the_last_record_in_the_log() -> None:
    """KRaftControlRecordStateMachineTest.testUpdateWithoutSnapshot."""
    first, last = (VoterSet.of(nodes.voter(node_id) for node_id in ids) for ids in ((1,), (1, 2)))
    batches = (
        control_batch(0, 1, KRaftVersionRecord(1), VotersRecord(first)),
        control_batch(2, 1, VotersRecord(last)),
    )
    with fast_folder() as folder:
        log = MetadataLog(folder / "__cluster_metadata-0")
        storage = Storage(log, segment_bytes=LogSettings().segment_bytes)
        storage.write(Appended(batches), high_watermark=0, now_ms=1)
        history = storage.voter_history(VoterSet())
        storage.close()

    assert (history.voters, history.voters_offset, history.kraft_version) == (last, 2, 1)
