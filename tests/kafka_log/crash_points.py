"""Kill of a process in front of each operation on files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

OPERATIONS = (
    *((os, name) for name in ("open", "pwrite", "pwritev", "ftruncate", "truncate", "fsync", "fdatasync")),
    *((Path, name) for name in ("rename", "replace", "unlink", "write_bytes", "mkdir")),
)


class KilledError(BaseException):
    """The process is killed at this point; nothing handles it."""


@contextlib.contextmanager
def killed_at(number: int) -> Iterator[list[str]]:
    """Raise KilledError in front of operation `number` and of all later ones. Yield the names of the operations that were done."""
    done: list[str] = []

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            if len(done) >= number:
                raise KilledError
            done.append(name)
            return original(*arguments, **named)

        return operation

    with contextlib.ExitStack() as patched:
        for owner, name in OPERATIONS:
            patched.enter_context(mock.patch.object(owner, name, counted(name, getattr(owner, name))))
        with contextlib.suppress(KilledError):
            yield done
