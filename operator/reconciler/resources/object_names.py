"""Validation of Kubernetes names: DNS subdomain for Steward's objects, DNS label for namespaces (RFC 1123)."""

from __future__ import annotations

import re

MAX_NAME_LENGTH = 253
"""Of metadata.name."""

MAX_NAMESPACE_LENGTH = 63
"""Of a namespace, which is part of hosts' names."""

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_object_name(text: str) -> bool:
    """Return whether Kubernetes takes a name as metadata.name.

    >>> is_object_name("orders.v1"), is_object_name("Orders"), is_object_name("a_b"), is_object_name("a..b")
    (True, False, False, False)
    """
    return len(text) <= MAX_NAME_LENGTH and SUBDOMAIN.fullmatch(text) is not None


def is_namespace_name(text: str) -> bool:
    """Return whether Kubernetes takes a name as that of a namespace.

    >>> is_namespace_name("team-a"), is_namespace_name("team.a"), is_namespace_name("a" * 64)
    (True, False, False)
    """
    return len(text) <= MAX_NAMESPACE_LENGTH and "." not in text and is_object_name(text)
