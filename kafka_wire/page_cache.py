"""Which parts of a file are in the page cache, by cachestat(2) of Linux 6.5. Elsewhere nothing is known to be."""

import ctypes
import mmap
import os

_CACHESTAT = 451
"""Number of the system call, the same on all architectures that Linux 6.5 runs on but Alpha."""


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cached", "dirty", "written", "evicted", "recently_evicted"))


_syscall = ctypes.CDLL(None, use_errno=True).syscall if os.uname().sysname == "Linux" else None


def is_cached(descriptor: int, position: int, size: int) -> bool:
    """Return whether `size` bytes of a file from a position on are in the page cache; False where that cannot be found out."""
    if _syscall is None or size <= 0:
        return False
    pages = _Pages()
    if _syscall(_CACHESTAT, descriptor, ctypes.byref(_Range(position, size)), ctypes.byref(pages), 0):
        return False
    spanned = (position + size - 1) // mmap.PAGESIZE - position // mmap.PAGESIZE + 1
    return bool(pages.cached == spanned)
