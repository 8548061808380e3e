"""`/controller` (the active controller) and `/controller_epoch` (the count of controller elections).

`/controller` has two JSON versions: 1 has the broker id and a timestamp, 2 (Kafka 3.4 and later) adds the epoch of a
KRaft controller, -1 outside a migration. The version number is ignored, as in Kafka; only the fields are read.
Source: ControllerZNode and ControllerEpochZNode in kafka.zk.ZkData, KafkaController.elect; each case below was run with
Kafka 3.9's decoder.
"""

import re
from dataclasses import dataclass

from kafka_zookeeper import paths
from kafka_zookeeper.formats.documents import INT32_MAX, FormatError, int_field, read_object, shown

NO_CONTROLLER = -1
"""Broker id that means that there is no controller."""

_EPOCH = re.compile(rb"\+?[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """Content of `/controller`."""

    broker_id: int
    timestamp_ms: int = -1
    """Time of the election, since 1970; -1 if it is unreadable. Informational."""
    kraft_controller_epoch: int | None = -1
    """-1 in plain ZooKeeper mode; None if the document has no such field, as in JSON version 1."""


def encode_controller(registration: ControllerRegistration) -> bytes:
    """Return the document of JSON version 2, or of version 1 if the KRaft epoch is None."""
    kraft_epoch = registration.kraft_controller_epoch
    version, tail = (1, "") if kraft_epoch is None else (2, f',"kraftControllerEpoch":{kraft_epoch}')
    return (
        f'{{"version":{version},"brokerid":{registration.broker_id},"timestamp":"{registration.timestamp_ms}"{tail}}}'
    ).encode()


def decode_controller(data: bytes | None) -> ControllerRegistration:
    """Decode `/controller` of either JSON version; only the broker id is required, as in Kafka."""
    document = read_object(paths.CONTROLLER, data)
    broker_id = int_field(paths.CONTROLLER, document, "brokerid")
    kraft_epoch = document.get("kraftControllerEpoch")
    return ControllerRegistration(
        broker_id, _timestamp_ms(document.get("timestamp")), kraft_epoch if type(kraft_epoch) is int else None
    )


def controller_id(data: bytes | None) -> int:
    """Return the controller's broker id by Kafka's rule, NO_CONTROLLER if there is none; `data` is that of an existing znode.

    - `{"brokerid":N,…}` of any version: N. A `brokerid` of -1 means that there is no controller.
    - Not JSON: there is no controller.
    - JSON without an integer `brokerid`, or no data: FormatError. Kafka's election fails with an error.

    In no case does a broker change the znode: without a controller it tries to create the znode, fails because it exists, and waits
    for the next change of `/controller`. Such a znode must therefore be deleted before a controller can be elected.
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
    """Decode `/controller_epoch`: a number from 0 to 2**31 - 1, without other characters."""
    if data is None or not _EPOCH.fullmatch(data) or int(data) > INT32_MAX:
        raise FormatError(paths.CONTROLLER_EPOCH, f"expected a number from 0 to {INT32_MAX}, found {shown(data)}")
    return int(data)


def _timestamp_ms(value: object) -> int:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value) else -1
