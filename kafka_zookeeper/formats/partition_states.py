"""`/brokers/topics/T/partitions/P/state`: leader and ISR of one partition.

`partition_columns` reads and writes many of them at a time, for failovers; it must agree with this module.
Source: TopicPartitionStateZNode in kafka.zk.ZkData.
"""

from dataclasses import dataclass

from kafka_zookeeper.formats.documents import FormatError, as_int, as_list, field, int_field, read_object

RECOVERED = 0
RECOVERING = 1
"""The leader was elected uncleanly and has not reported its recovery yet (KIP-704)."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Leadership of a partition. The partition epoch is the znode's version, not part of the document."""

    leader: int
    """Broker id of the leader; -1 if there is none."""
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    """Epoch of the controller that wrote the state."""
    leader_recovery_state: int = RECOVERED


def encode_partition_state(state: PartitionState) -> bytes:
    """Return the document; the recovery state is only written if it is not RECOVERED, as Kafka does."""
    recovery = f'"leader_recovery_state":{state.leader_recovery_state},' if state.leader_recovery_state else ""
    return (
        f'{{"controller_epoch":{state.controller_epoch},"leader":{state.leader},"version":1,{recovery}'
        f'"leader_epoch":{state.leader_epoch},"isr":[{",".join(map(str, state.isr))}]}}'
    ).encode()


def decode_partition_state(path: str, data: bytes | None) -> PartitionState:
    """Decode a partition's state; `version` is ignored, as in Kafka.

    Kafka treats a partition whose data is not JSON (FormatError.not_json here) as a partition without a state.
    """
    document = read_object(path, data)
    recovery = RECOVERED
    if "leader_recovery_state" in document:
        recovery = int_field(path, document, "leader_recovery_state")
        if recovery not in {RECOVERED, RECOVERING}:
            raise FormatError(path, f"leader_recovery_state must be {RECOVERED} or {RECOVERING}, found {recovery}")
    isr = as_list(path, "'isr'", field(path, document, "isr"))
    return PartitionState(
        leader=int_field(path, document, "leader"),
        leader_epoch=int_field(path, document, "leader_epoch"),
        isr=tuple(as_int(path, "a broker of 'isr'", broker) for broker in isr),
        controller_epoch=int_field(path, document, "controller_epoch"),
        leader_recovery_state=recovery,
    )
