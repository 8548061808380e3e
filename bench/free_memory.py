"""Free memory, occupied by the page cache before a measured load.

A host that lends memory to a virtual machine takes back what is free there, after seconds, and lends it again page by page: on one such machine
a gigabyte that is written to a file then costs two seconds of processor time instead of a third of one, for whichever side happens to run on it.
A machine in use has little free memory: its kernel drops pages of files that were read long ago, which costs the same for each side.
"""

import functools
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

LEFT_FREE_BYTES = 192 * 1024**2
"""About where the kernel begins to drop pages (proc_sys_vm(5), min_free_kbytes)."""
CHUNK_BYTES = 16 * 1024**2
FILE_BYTES = 1024**4
"""Size of a file without blocks: what is read of it costs memory, and no disk."""


def occupy_free_memory() -> None:
    """Fill the free memory with pages of a file that has only a hole. They are read once each, so they are the first that the kernel drops."""
    chunks = max(0, _free_bytes() - LEFT_FREE_BYTES) // CHUNK_BYTES
    for begin in itertools.islice(_positions(), chunks):
        os.sendfile(_null(), _holes().fileno(), begin, CHUNK_BYTES)


@functools.cache
def _holes() -> IO[bytes]:
    """Return the file. It has no name, so it is gone with this process."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - open until the process ends
    file.truncate(FILE_BYTES)
    return file


@functools.cache
def _null() -> int:
    return os.open(os.devnull, os.O_WRONLY)


@functools.cache
def _positions() -> Iterator[int]:
    """Return the places that were not read yet, for all calls together: a page that is read again would be kept longer."""
    return iter(range(0, FILE_BYTES, CHUNK_BYTES))


def _free_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemFree:"))
