"""`/latest_producer_id_block`: the block of producer ids that was allocated last.

The znode is created without data (ZooKeeper's null), which it keeps until the first block. It must not be created with empty data:
a broker whose inter.broker.protocol.version is below 3.0 crashes on it. Source: ProducerIdBlockZNode in kafka.zk.ZkData.
"""

import re
from dataclasses import dataclass

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import INT32_MAX, FormatError, shown

INT64_MAX = 2**63 - 1

_LONG = re.compile("[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Consecutive producer ids of one broker; both ends are included."""

    broker_id: int
    first_producer_id: int
    last_producer_id: int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """Return the document."""
    return (
        f'{{"version":1,"broker":{block.broker_id},"block_start":"{block.first_producer_id}",'
        f'"block_end":"{block.last_producer_id}"}}'
    ).encode()


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock | None:
    """Decode the last block; None before the first one. A block has 1 to 2**31 - 1 ids."""
    if data is None:
        return None
    path = paths.PRODUCER_ID_BLOCK
    document = documents.read_object(path, data)
    broker_id = documents.int_field(path, document, "broker")
    first, last = (_long(path, document, key) for key in ("block_start", "block_end"))
    if not 0 <= last - first < INT32_MAX:
        raise FormatError(path, f"a block must have 1 to {INT32_MAX} ids, found {first} to {last}")
    return ProducerIdBlock(broker_id, first, last)


def _long(path: str, document: documents.Document, key: str) -> int:
    text = documents.text_field(path, document, key)
    if not _LONG.fullmatch(text) or int(text) > INT64_MAX:
        raise FormatError(path, f"{key} must be a string with a number from 0 to {INT64_MAX}, found {shown(text)}")
    return int(text)
