"""Changes of a standalone broker's metadata: on the disk first, then applied (ADR 50)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_log.errors import LogWriteError
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.guard import EVERYTHING
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.sasl.scram_keys import ScramCredential
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import ControlPlaneError
from light_broker.control.standalone import state_file
from light_broker.control.standalone.control import StandaloneControl
from light_broker.control.standalone.state_file import StateFile, open_state_file
from light_broker.core.metadata_view import BrokerView, MetadataView, PartitionView

CONTEXT = RequestContext("PLAINTEXT", "test", "127.0.0.1", 1, 7)


@dataclass(eq=False)
class Side:
    """Records what the control plane changes. Implements BrokerSide."""

    file: StateFile
    calls: list[str] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE
    """Of each deletion."""

    def set_view(self, view: MetadataView) -> None:
        """Record the topics, and whether the file has them already."""
        on_disk = open_state_file(self.file._path.parent, 1).state.topics.keys()
        self.calls.append(f"view {sorted(view.topics)}, on the disk {sorted(on_disk)}")

    async def lead(
        self,
        partition: TopicPartition,
        topic_id: UUID,  # noqa: ARG002
        state: PartitionView,
        *,
        is_new: bool = False,
    ) -> ErrorCode:
        """Record a partition."""
        self.calls.append(f"lead {'new ' if is_new else ''}{partition} in epoch {state.leader_epoch}")
        return ErrorCode.NONE

    async def follow(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Not called: there is no other broker."""
        raise NotImplementedError

    async def stop(self, partition: TopicPartition, *, delete: bool) -> ErrorCode:
        """Record a partition."""
        self.calls.append(f"stop {partition}, delete {delete}")
        return self.error

    def set_acls(self, acls: Acls) -> None:
        """Record nothing."""

    def set_credentials(self, credentials: Mapping[str, Mapping[str, ScramCredential]]) -> None:
        """Record nothing."""


async def started(
    folder: Path, broker: Callable[[], BrokerView] = lambda: BrokerView(1)
) -> tuple[StandaloneControl, Side]:
    """Start the control plane in a folder."""
    file = open_state_file(folder, 1)
    file.count_start()
    side = Side(file)
    control = StandaloneControl(file, broker, lambda: Settings(1), lambda _: EVERYTHING, has_authorizer=False)
    await control.start(side)
    return control, side


def creation(name: str, partitions: int = 1) -> dict[str, Any]:
    """Return a CreateTopics request."""
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": []}
    return {"topics": [topic], "timeout_ms": 1, "validate_only": False}


def deletion(name: str) -> dict[str, Any]:
    """Return a DeleteTopics request."""
    return {"topics": [{"name": name, "topic_id": UUID(int=0)}], "topic_names": [], "timeout_ms": 1}


async def test_a_topic_is_on_the_disk_before_it_is_seen_and_led(tmp_path: Path) -> None:
    """A killed process starts with it, or its client has no response."""
    control, side = await started(tmp_path)
    side.calls.clear()

    await control.forward(ApiKey.CREATE_TOPICS, CONTEXT, creation("orders", 2))

    assert side.calls == [
        "view ['orders'], on the disk ['orders']",
        "lead new orders-0 in epoch 0",
        "lead new orders-1 in epoch 0",
    ]


async def test_a_start_leads_the_topics_of_the_file_in_a_higher_epoch(tmp_path: Path) -> None:
    """A log that was not created before the crash is created then."""
    control, _ = await started(tmp_path)
    await control.forward(ApiKey.CREATE_TOPICS, CONTEXT, creation("orders"))

    _, side = await started(tmp_path)

    assert side.calls == ["view ['orders'], on the disk ['orders']", "lead orders-0 in epoch 1"]


async def test_a_start_makes_the_metadata_once_for_all_topics(tmp_path: Path) -> None:
    """The work of a start grows with the number of topics, not with its square."""
    control, _ = await started(tmp_path)
    for number in range(3):
        await control.forward(ApiKey.CREATE_TOPICS, CONTEXT, creation(f"orders-{number}"))
    made: list[BrokerView] = []

    def broker() -> BrokerView:
        made.append(BrokerView(1))
        return made[-1]

    await started(tmp_path, broker)

    assert len(made) == 1


async def test_a_deletion_that_cannot_be_noted_does_not_stop_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start deletes the logs again, of which there are none."""
    control, side = await started(tmp_path)
    await control.forward(ApiKey.CREATE_TOPICS, CONTEXT, creation("orders"))
    side.error = ErrorCode.KAFKA_STORAGE_ERROR
    await control.forward(ApiKey.DELETE_TOPICS, CONTEXT, deletion("orders"))
    file = open_state_file(tmp_path, 1)
    file.count_start()

    async def fail(self: StateFile, state: object) -> None:  # noqa: ARG001
        raise ControlPlaneError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left")

    monkeypatch.setattr(StateFile, "save", fail)
    control = StandaloneControl(
        file, lambda: BrokerView(1), lambda: Settings(1), lambda _: EVERYTHING, has_authorizer=False
    )
    await control.start(Side(file))

    assert list(file.state.deletions) == ["orders"]


async def test_a_deletion_that_did_not_end_is_ended_by_the_next_start(tmp_path: Path) -> None:
    """A crash, or a directory that was offline: the logs would else be found by a new topic of that name."""
    control, side = await started(tmp_path)
    await control.forward(ApiKey.CREATE_TOPICS, CONTEXT, creation("orders"))
    side.error = ErrorCode.KAFKA_STORAGE_ERROR
    await control.forward(ApiKey.DELETE_TOPICS, CONTEXT, deletion("orders"))

    _, second = await started(tmp_path)
    _, third = await started(tmp_path)

    assert second.calls == ["view [], on the disk []", "stop orders-0, delete True"]
    assert third.calls == ["view [], on the disk []"]


async def test_a_change_that_cannot_be_written_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: KAFKA_STORAGE_ERROR, and the next change works again."""
    control, side = await started(tmp_path)
    side.calls.clear()

    def full(path: Path, content: bytes) -> None:  # noqa: ARG001
        raise LogWriteError("Failed to write: no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(state_file, "replace_file", full)
        with pytest.raises(ControlPlaneError) as raised:
            await control.forward(ApiKey.CREATE_TOPICS, CONTEXT, creation("orders"))
    assert (raised.value.code, side.calls) == (ErrorCode.KAFKA_STORAGE_ERROR, [])

    await control.forward(ApiKey.CREATE_TOPICS, CONTEXT, creation("orders"))
    assert side.calls[-1] == "lead new orders-0 in epoch 0"


async def test_blocks_of_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    """Also after a start: a part of a block may be lost (KIP-98)."""
    control, _ = await started(tmp_path)
    first = await control.allocate_producer_ids()
    second = await control.allocate_producer_ids()
    restarted, _ = await started(tmp_path)

    assert [first.first, second.first, (await restarted.allocate_producer_ids()).first] == [0, 1000, 2000]


async def test_internal_topics_have_one_replica(tmp_path: Path) -> None:
    """offsets.topic.replication.factor is 3 by default, which one broker cannot have."""
    control, _ = await started(tmp_path)
    request = creation("__consumer_offsets")
    request["topics"][0]["replication_factor"] = 3

    answer = await control.create_topics(request)

    assert [(topic["error_code"], topic["replication_factor"]) for topic in answer["topics"]] == [(ErrorCode.NONE, 1)]
