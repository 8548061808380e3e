"""The probes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from reconciler.probes import Probes


def get(port: int, path: str) -> tuple[int, object]:
    """Status and body."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.slow
def test_healthy_is_one_that_makes_progress_and_ready_one_that_has_seen_everything() -> None:
    """200 or 503, with what is wrong."""
    problems: dict[str, str | None] = {"loop": None, "loaded": "not yet"}
    probes = Probes(
        "127.0.0.1", 0, health={"loop": lambda: problems["loop"]}, ready={"loaded": lambda: problems["loaded"]}
    )
    try:
        assert get(probes.port, "/healthz") == (200, {})
        assert get(probes.port, "/readyz") == (503, {"loaded": "not yet"})
        problems["loaded"] = None
        assert get(probes.port, "/readyz") == (200, {})
        problems["loop"] = "the event loop has been blocked for 20 s"
        assert get(probes.port, "/healthz") == (503, {"loop": "the event loop has been blocked for 20 s"})
        assert get(probes.port, "/readyz")[0] == 503
        assert get(probes.port, "/")[0] == 404
    finally:
        probes.close()


@pytest.mark.slow
def test_a_standby_is_ready_and_its_response_names_it() -> None:
    """Otherwise an upgrade would wait for it forever."""
    probes = Probes("127.0.0.1", 0, health={}, ready={}, notes={"lease": lambda: "standby; operator is held by a"})
    try:
        assert get(probes.port, "/readyz") == (200, {"lease": "standby; operator is held by a"})
    finally:
        probes.close()
