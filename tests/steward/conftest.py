"""Fixtures of the command line's tests."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Restore the logging of the process, which commands configure."""
    root, kazoo = logging.getLogger(), logging.getLogger("kazoo")
    handlers, root_level, kazoo_level = root.handlers[:], root.level, kazoo.level
    yield
    root.handlers[:] = handlers
    root.setLevel(root_level)
    kazoo.setLevel(kazoo_level)
