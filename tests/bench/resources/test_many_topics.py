"""Counts of writes, and the condition for a finished Topic, in the benchmark of Topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from bench.resources.many_topics import is_ready, writes
from lab.peers.kubernetes import KubernetesApi

TEXT = b"""# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="steward.dev",resource="topics",subresource="",verb="PATCH"} 7
apiserver_request_total{code="200",group="steward.dev",resource="topics",subresource="status",verb="PATCH"} 5
apiserver_request_total{code="409",group="steward.dev",resource="topics",subresource="status",verb="PATCH"} 1
apiserver_request_total{code="201",group="steward.dev",resource="topics",subresource="",verb="POST"} 100
apiserver_request_total{code="200",group="steward.dev",resource="clusters",subresource="status",verb="PATCH"} 3
"""


def test_every_change_but_the_creations_counts() -> None:
    """Rejected ones too: they cost the same."""
    api = cast("KubernetesApi", SimpleNamespace(get=lambda _: TEXT))

    assert writes(api) == 13
    assert writes(api, "clusters") == 3
    assert writes(api, "topics", {"POST"}) == 100


def test_a_topic_is_finished_when_it_is_ready() -> None:
    """Not before it has a status."""
    assert not is_ready({})
    assert not is_ready({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    assert is_ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
