"""Storage of samples as Parquet files: one file per sample, in a folder for each day (UTC).

Files are written atomically, and a repeated round replaces the earlier file. pyarrow is imported when the first file is written, so that
a sampler that writes to a topic does not load it.
"""

import asyncio
import datetime as dt
import hashlib
import importlib.util
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from balance_analytics.model.column import Column, Kind
from balance_analytics.model.sample_rows import DATE, SAMPLE_ROWS
from balance_analytics.model.samples import NO_BROKER, UNKNOWN, Ints, Longs, Samples
from balance_analytics.sampling.sink import WriteFailed, Written

COMPRESSION = "zstd"
"""Supported by all readers of Parquet, and half the size of snappy for samples."""


class ParquetWriter:
    """Stores samples in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._token = secrets.token_hex(8)  # process ids are equal in containers that share a folder

    async def open(self, *, deadline: float) -> None:  # noqa: ARG002 -- creating a folder does not wait
        """Create the folder if it does not exist. Raises WriteFailed."""
        if importlib.util.find_spec("pyarrow") is None:
            raise WriteFailed("Parquet files need pyarrow, which is not installed: pip install pyarrow")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteFailed(f"{self._folder} cannot be created: {error.strerror}") from error

    async def write(self, samples: Samples, *, deadline: float) -> Written:  # noqa: ARG002 -- there are no retries
        """Write a sample. Raises WriteFailed; then it has no file."""
        if not len(samples):
            return Written(0, 0)
        try:
            return Written(1, await asyncio.to_thread(self._write, samples))
        except OSError as error:
            raise WriteFailed(f"a sample cannot be written below {self._folder}: {error}") from error

    def _write(self, samples: Samples) -> int:
        from pyarrow import parquet  # noqa: PLC0415 - see the module

        day = dt.datetime.fromtimestamp(samples.round_ms / 1000, dt.UTC).date()
        folder = self._folder / f"{DATE}={day.isoformat()}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"sample-{_cluster(samples.cluster_id)}-{samples.round_ms}.parquet"
        draft = folder / f".{path.name}.{self._token}"  # readers skip names that begin with a dot
        try:
            parquet.write_table(table_of(samples), draft, compression=COMPRESSION)
            size = draft.stat().st_size
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return size


def table_of(samples: Samples) -> Any:
    """Return a sample as a pyarrow table with the columns SAMPLE_ROWS."""
    import pyarrow as pa  # noqa: PLC0415 - see the module

    counts = np.diff(samples.first_row)
    topic = pa.DictionaryArray.from_arrays(np.repeat(np.arange(len(counts)), counts).astype(np.int32), samples.topics)
    filled = (samples.replicas != NO_BROKER).ravel()
    columns = {
        "cluster_id": pa.array([samples.cluster_id], pa.string()).take(pa.array(np.zeros(len(samples), np.int64))),
        "topic": topic.cast(pa.string()),
        "sampled_at_ms": pa.array(np.repeat(samples.sampled_at_ms, counts)),
        "round_ms": pa.array(np.full(len(samples), samples.round_ms, np.int64)),
        "replicas": _lists(pa, samples.replicas, filled, pa.array(samples.replicas.ravel()[filled])),
        "isr": _ids(pa, samples.isr),
        "size_bytes": _lists(pa, samples.replicas, filled, _nullable(pa, samples.size_bytes.ravel()[filled])),
    }
    for name in ("partition", "leader", "leader_epoch", "committed_groups"):
        columns[name] = pa.array(getattr(samples, name))
    for name in ("start_offset", "end_offset", "committed_offset_sum"):
        columns[name] = _nullable(pa, getattr(samples, name))
    return pa.table([columns[column.name] for column in SAMPLE_ROWS], schema=schema_of(pa, SAMPLE_ROWS))


def schema_of(pa: Any, table: tuple[Column, ...]) -> Any:
    """Return a table's schema; lists may contain nulls, and their elements have the name that Spark uses."""
    kinds = {
        Kind.STRING: pa.string(),
        Kind.INT32: pa.int32(),
        Kind.INT64: pa.int64(),
        Kind.INT32_LIST: pa.list_(pa.field("element", pa.int32())),
        Kind.INT64_LIST: pa.list_(pa.field("element", pa.int64())),
    }
    return pa.schema([pa.field(column.name, kinds[column.kind]) for column in table])


def _nullable(pa: Any, column: Longs) -> Any:
    return pa.array(column, mask=column == UNKNOWN)


def _ids(pa: Any, column: Ints) -> Any:
    filled = (column != NO_BROKER).ravel()
    return _lists(pa, column, filled, pa.array(column.ravel()[filled]))


def _lists(pa: Any, padded: Ints, filled: Any, values: Any) -> Any:
    """Return a padded column of shape (rows, longest) as lists of `values`, which are those where `filled` is true."""
    lengths = filled.reshape(padded.shape).sum(axis=1)
    ends = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths).astype(np.int32)))
    kind = pa.list_(pa.field("element", values.type))
    return pa.ListArray.from_arrays(pa.array(ends), values, type=kind)


def _cluster(cluster_id: str) -> str:
    """Return a cluster's id in a form that is valid in a file's name."""
    return (
        cluster_id
        if cluster_id.replace("-", "a").replace("_", "a").isalnum()
        else hashlib.sha256(cluster_id.encode()).hexdigest()[:16]
    )
