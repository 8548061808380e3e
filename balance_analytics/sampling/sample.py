"""One sample of a cluster: the metadata, then all brokers in parallel, until the deadline.

If a broker is offline, slow or rejects a request, its data is missing, with a reason; the sample contains everything else.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from balance_analytics.model.samples import Samples
from balance_analytics.sampling import committed_offsets, log_dirs, offsets
from balance_analytics.sampling.missing_data import DataKind, MissingData, Reason
from balance_analytics.sampling.sample_builder import SampleBuilder, builder_of
from kafka_wire.net.cluster import ClusterClient, for_each_broker


@dataclass(frozen=True, slots=True)
class TakenSample:
    """A sample: its rows, the missing data, and the number of brokers."""

    samples: Samples
    missing_data: MissingData
    brokers: int


async def take_sample(
    client: ClusterClient, round_ms: int, *, deadline: float, now_ms: Callable[[], int], with_committed: bool
) -> TakenSample:
    """Take a sample; `deadline` is loop time. Raises RequestFailed if no broker returns the metadata."""
    start_ms = now_ms()
    missing_data = MissingData()
    builder = builder_of(await client.metadata(deadline=deadline), missing_data)
    offsets.count_leaderless(builder, missing_data)

    async def read_broker(broker_id: int) -> None:
        await _read_broker(client, broker_id, builder, missing_data, deadline, now_ms)

    broker_ids = np.unique(np.concatenate((builder.replicas.ravel(), builder.leader)))
    await for_each_broker(broker_ids[broker_ids >= 0].tolist(), read_broker)
    if with_committed:
        await committed_offsets.read_committed(client, builder, missing_data, deadline=deadline)
    return TakenSample(builder.build(round_ms, start_ms), missing_data, len(client.broker_ids))


async def _read_broker(
    client: ClusterClient,
    broker_id: int,
    builder: SampleBuilder,
    missing_data: MissingData,
    deadline: float,
    now_ms: Callable[[], int],
) -> None:
    led = np.flatnonzero(builder.leader == broker_id)
    broker = client.broker(broker_id)
    if broker is None:
        reason = f"broker {broker_id} is not in the metadata: offsets of {len(led)} partitions are missing"
        missing_data.add(DataKind.OFFSETS, Reason.CONNECTION, len(led), reason)
        log_dirs.count_missing_broker(broker_id, builder, missing_data)
        return
    # Offsets first: rates depend on the time at which they are read, sizes hardly.
    await offsets.read_offsets(broker, led, builder, missing_data, deadline=deadline, now_ms=now_ms)
    await log_dirs.read_sizes(broker, broker_id, builder, missing_data, deadline=deadline)
