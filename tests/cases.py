"""Many cases in one test: a failure names the case that it is about.

A test that loops over the versions of an API is one line in a report. Which version failed is a note on the error, which pytest prints
below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*parts: object) -> Iterator[None]:
    """Add the name of the case, such as an API and a version, to an error that is raised in the block."""
    try:
        yield
    except BaseException as failure:
        failure.add_note("case: " + " ".join(str(part) for part in parts))
        raise
