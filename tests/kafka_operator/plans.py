"""Plans in ConfigMaps, as users write them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from typing import Any

from kafka_operator.resources.reassignment import Assignment


def document(plan: Iterable[Assignment], **more: Any) -> str:
    """A plan as kafka-reassign-partitions.sh writes it."""
    partitions = [item.to_json() | {"log_dirs": ["any"] * len(item.replicas)} for item in plan]
    return json.dumps({"version": 1, "partitions": partitions, **more}, indent=1)


def raw_config_map(name: str, plan: Iterable[Assignment], *, packed: bool = False, **more: Any) -> dict[str, Any]:
    """A ConfigMap with a plan, gzipped if it is packed."""
    text = document(plan, **more)
    if packed:
        data = {"binaryData": {"plan.json.gz": base64.b64encode(gzip.compress(text.encode())).decode()}}
    else:
        data = {"data": {"plan.json": text}}
    return {"metadata": {"name": name, "namespace": "shop"}, **data}
