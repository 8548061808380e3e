"""Types of pyarrow for each kind of column."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from balance_analytics.model.column import Kind

ARROW_TYPES: Mapping[Kind, Any] = {
    Kind.STRING: pa.string(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT64: pa.float64(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.INT32_LIST: pa.list_(pa.int32()),
    Kind.INT64_LIST: pa.list_(pa.int64()),
}
