"""Renewal of certificates while the process runs: their files are polled, and new connections present the new certificates.

A file that cannot be used changes nothing. Authorities are added and never removed: OpenSSL cannot forget one, so that needs a
restart.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable
from pathlib import Path

from kafka_node.security.contexts import load
from kafka_node.security.settings import TlsFiles

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 30.0
"""Certificates are renewed hours before they expire; Kubernetes needs a minute to update a mounted secret."""

_Stamp = tuple[tuple[int, int, int], ...]


class Renewal:
    """Reloads TLS contexts when their files change."""

    def __init__(self, contexts: Iterable[tuple[ssl.SSLContext | None, TlsFiles | None]]) -> None:
        """Take contexts with the files that they were made of; a pair with None is ignored."""
        self._contexts = [(context, files) for context, files in contexts if context is not None and files is not None]
        self._stamps = [_stamp(files) for _, files in self._contexts]

    async def follow(self) -> None:
        """Poll the files until cancelled."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.check()

    def check(self) -> None:
        """Load the files that have changed since the last check."""
        for place, (context, files) in enumerate(self._contexts):
            stamp = _stamp(files)
            if stamp is None or stamp == self._stamps[place]:
                continue
            self._stamps[place] = stamp
            try:
                # Loaded into another context first: a partial load would break the one in use.
                load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files)
                load(context, files)
            except ValueError as error:
                log.error("Failed to reload TLS files; keeping the previous certificates", extra={"error": str(error)})
            else:
                log.info("Reloaded TLS files", extra={"certificate": str(files.certificate)})


def _stamp(files: TlsFiles) -> _Stamp | None:
    """Return a value that changes when a file is written or replaced; None while one is missing."""
    paths: list[Path] = [path for path in (files.certificate, files.key, files.ca) if path is not None]
    try:
        found = [path.stat() for path in paths]
    except OSError:
        return None
    return tuple((status.st_ino, status.st_size, status.st_mtime_ns) for status in found)
