"""Certificates that are renewed while the process runs: their files are looked at, and new connections show the new ones.

A file that cannot be used changes nothing. Authorities are added and never taken away: OpenSSL cannot forget one, so that needs a
restart. Leaves out making the contexts (contexts).
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable
from pathlib import Path

from kafka_node.security.contexts import load
from kafka_node.security.settings import TlsFiles

log = logging.getLogger(__name__)

LOOK_S = 30.0
"""Certificates are renewed hours before they end; Kubernetes itself needs a minute to bring a new secret."""

_Stamp = tuple[tuple[int, int, int], ...]


class Renewal:
    """Keeps contexts as their files are."""

    def __init__(self, contexts: Iterable[tuple[ssl.SSLContext | None, TlsFiles | None]]) -> None:
        """Contexts with the files that they were made of; what is None is left out."""
        self._contexts = [(context, files) for context, files in contexts if context is not None and files is not None]
        self._stamps = [_stamp(files) for _, files in self._contexts]

    async def follow(self) -> None:
        """Look again and again, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """Load what has changed since the last look."""
        for place, (context, files) in enumerate(self._contexts):
            stamp = _stamp(files)
            if stamp is None or stamp == self._stamps[place]:
                continue
            self._stamps[place] = stamp
            try:
                load(
                    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files
                )  # tried elsewhere: half a load would break this one
                load(context, files)
            except ValueError as error:
                log.error("renewed TLS files cannot be used: those of before stay", extra={"why": str(error)})
            else:
                log.info("renewed TLS files were loaded", extra={"certificate": str(files.certificate)})


def _stamp(files: TlsFiles) -> _Stamp | None:
    """Tell what differs when a file was written or replaced; None while one is missing."""
    paths: list[Path] = [path for path in (files.certificate, files.key, files.ca) if path is not None]
    try:
        found = [path.stat() for path in paths]
    except OSError:
        return None
    return tuple((one.st_ino, one.st_size, one.st_mtime_ns) for one in found)
