"""A tenure that ends with its test."""

from collections.abc import AsyncIterator

import pytest

from tests.controller_core_shell.tenures import Tenure


@pytest.fixture
async def tenure(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    """A tenure over brokers 1, 2 and 3."""
    tenure = Tenure(monkeypatch, 1, 2, 3)
    yield tenure
    await tenure.controller.close()
    assert set() == tenure.controller._tasks
