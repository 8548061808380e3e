"""Names of resources for topics whose own names Kubernetes does not take.

Kafka allows capitals, underscores and dots anywhere; Kubernetes wants a DNS subdomain (RFC 1123). A derived name is as close as it can be,
and ends with a part of the topic name's digest, so that two topics never share one and every run gives the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from reconciler.resources.object_names import MAX_NAME_LENGTH, is_object_name

DIGEST_LENGTHS = (8, 16, 64)
"""Digits of the digest: the shortest that clashes with no other name; one of 64 never does."""


def resource_names(topics: Iterable[str]) -> dict[str, str]:
    """Return metadata.name for each topic: its own name where that is one.

    >>> resource_names(["orders", "Orders_v2"])
    {'orders': 'orders', 'Orders_v2': 'orders-v2-65a45c47'}
    """
    every = set(topics)
    names = {topic: topic for topic in every if is_object_name(topic)}
    taken = set(names)
    for topic in sorted(every - taken):
        name = next(name for length in DIGEST_LENGTHS if (name := _derived(topic, length)) not in taken)
        names[topic] = name
        taken.add(name)
    return names


def _derived(topic: str, digits: int) -> str:
    suffix = sha256(topic.encode()).hexdigest()[:digits]
    words = [word for word in re.split(r"[^a-z0-9]+", topic.lower()) if word]
    base = "-".join(words)[: MAX_NAME_LENGTH - 1 - digits].rstrip("-")
    return f"{base}-{suffix}" if base else f"topic-{suffix}"
