"""A term whose znodes are watched."""

from collections.abc import AsyncIterator

import pytest

from controller_core.shell.zookeeper import watching as watching_module
from controller_core.shell.zookeeper.watching import ClusterWatcher
from tests.controller_core.shell.terms import Term, settled


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """An active term with brokers 1, 2 and 3, after the first reads."""
    monkeypatch.setattr(watching_module, "OVERLOAD_PAUSE_S", 0.0)
    term = Term(monkeypatch, 1, 2, 3)
    ClusterWatcher(term.controller, term.session, term.store.versions, term.store.unreadable).start()
    await settled()
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()
