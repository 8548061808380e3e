"""Committed records are applied in one piece: otherwise a test on a busy machine sees a part of them."""

import pytest

from controller_core.shell.kraft import follower


@pytest.fixture(autouse=True)
def one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice last as long as there is work; the test of slices sets the time that the product has."""
    monkeypatch.setattr(follower, "SLICE_S", 3600.0)
