"""`/brokers/topics/T/partitions/P/state`: a partition's leader and ISR, one at a time.

Many at a time, which is what a failover reads and writes, are in `partition_columns`; it must agree with this module.
Source: TopicPartitionStateZNode in kafka.zk.ZkData.
"""

from dataclasses import dataclass

from kafka_zookeeper.formats.documents import FormatError, as_int, as_list, field, int_field, read_object

RECOVERED = 0
RECOVERING = 1
"""The leader was elected uncleanly and has not yet said that it recovered (KIP-704)."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition's leadership; its epoch is the znode's version and no part of the document."""

    leader: int
    """A broker's id, or -1: none."""
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    """The epoch of the controller that wrote it."""
    leader_recovery_state: int = RECOVERED


def encode_partition_state(state: PartitionState) -> bytes:
    """Return the document; the recovery state is written only where it is not RECOVERED, as Kafka does."""
    recovery = f'"leader_recovery_state":{state.leader_recovery_state},' if state.leader_recovery_state else ""
    return (
        f'{{"controller_epoch":{state.controller_epoch},"leader":{state.leader},"version":1,{recovery}'
        f'"leader_epoch":{state.leader_epoch},"isr":[{",".join(map(str, state.isr))}]}}'
    ).encode()


def decode_partition_state(path: str, data: bytes | None) -> PartitionState:
    """Read one partition's state; `version` is ignored, as Kafka does.

    Where its parser finds no JSON, Kafka takes the partition for one without a state (FormatError.not_json here).
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
