"""`/controller` (who is the controller) and `/controller_epoch` (how many there have been).

`/controller` comes in two JSON versions: 1 has the broker's id and a timestamp, 2 (Kafka 3.4 and later) adds the epoch of a
KRaft controller, -1 outside a migration. Neither Kafka nor we look at the version number; the fields decide.
Source: ControllerZNode and ControllerEpochZNode in kafka.zk.ZkData, KafkaController.elect; Kafka 3.9's decoder was run on
each case below.
"""

import re
from dataclasses import dataclass

from kafka_zookeeper import paths
from kafka_zookeeper.formats.documents import INT32_MAX, FormatError, int_field, read_object, shown

NO_CONTROLLER = -1
"""The id that means: nobody."""

_EPOCH = re.compile(rb"\+?[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """The content of `/controller`."""

    broker_id: int
    timestamp_ms: int = -1
    """When it was elected, since 1970; -1 where that cannot be read. Nothing depends on it."""
    kraft_controller_epoch: int | None = -1
    """-1 in plain ZooKeeper mode; None where the document, such as one of the older JSON version, does not tell."""


def encode_controller(registration: ControllerRegistration) -> bytes:
    """Return the document of JSON version 2, or of version 1 when there is no KRaft epoch to tell."""
    kraft_epoch = registration.kraft_controller_epoch
    version, tail = (1, "") if kraft_epoch is None else (2, f',"kraftControllerEpoch":{kraft_epoch}')
    return (
        f'{{"version":{version},"brokerid":{registration.broker_id},"timestamp":"{registration.timestamp_ms}"{tail}}}'
    ).encode()


def decode_controller(data: bytes | None) -> ControllerRegistration:
    """Read `/controller` of either JSON version; only the broker's id must be there, as for Kafka."""
    document = read_object(paths.CONTROLLER, data)
    broker_id = int_field(paths.CONTROLLER, document, "brokerid")
    kraft_epoch = document.get("kraftControllerEpoch")
    return ControllerRegistration(
        broker_id, _timestamp_ms(document.get("timestamp")), kraft_epoch if type(kraft_epoch) is int else None
    )


def controller_id(data: bytes | None) -> int:
    """Return who the controller is by Kafka's own rule, NO_CONTROLLER for nobody; `data` is that of an existing znode.

    - `{"brokerid":N,…}` of any version: N. A `brokerid` of -1 is what it says: nobody.
    - No JSON at all: nobody.
    - JSON without an integer `brokerid`, or no data: FormatError. Kafka's election ends there with an error.

    In all three a broker does not touch the znode: where nobody is named it tries to create its own, is refused because the
    znode exists, and waits for the next change of `/controller`. So such a znode must be deleted for anyone to be elected.
    """
    try:
        return decode_controller(data).broker_id
    except FormatError as error:
        if error.not_json:
            return NO_CONTROLLER
        raise


def encode_controller_epoch(epoch: int) -> bytes:
    """Return `/controller_epoch`: the number in decimal digits."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    """Read `/controller_epoch`, a number from 0 that fits 32 bits, with nothing around it."""
    if data is None or not _EPOCH.fullmatch(data) or int(data) > INT32_MAX:
        raise FormatError(paths.CONTROLLER_EPOCH, f"a number from 0 to {INT32_MAX} was expected, found {shown(data)}")
    return int(data)


def _timestamp_ms(value: object) -> int:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value) else -1
