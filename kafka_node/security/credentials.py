"""Credentials of users that log in at listeners: PLAIN's are in a file or the settings, SCRAM's come from the cluster's metadata.

Both are read at each authentication; the file only when it has changed, and the metadata through a port (CredentialSource), since
each mode stores them elsewhere. Source: PlainServerCallbackHandler, CredentialProvider.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from kafka_node.security.secret_files import SecretFileError, read_users
from kafka_wire.sasl.scram_decoy import CredentialShape
from kafka_wire.sasl.scram_keys import ScramCredential

log = logging.getLogger(__name__)

MAX_USER_CHARS = 1_024
"""RFC 4616 requires 255 bytes; longer names are not looked up in the credential source."""

_Stamp = tuple[int, int, int]


class UsersFile:
    """The users of PLAIN. While the file is unreadable or malformed, the previous users stay valid."""

    def __init__(self, path: Path) -> None:
        """Read it. Raises SecretFileError."""
        self._path = path
        self._stamp = self._stat()
        self._users = read_users(path)

    def password(self, user: str) -> str | None:
        """Return a user's password; None: there is no such user."""
        try:
            stamp = self._stat()
            if stamp != self._stamp:
                self._stamp = stamp
                self._users = read_users(self._path)
                log.info("Reloaded SASL/PLAIN users", extra={"path": str(self._path), "users": len(self._users)})
        except SecretFileError as error:
            log.error("Failed to reload SASL/PLAIN users; keeping the previous users", extra={"error": str(error)})
        return self._users.get(user)

    def _stat(self) -> _Stamp:
        """Return what differs after the file was written or replaced."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise SecretFileError(f"{self._path} cannot be read: {error.strerror}") from error
        return found.st_ino, found.st_size, found.st_mtime_ns


class UsersFiles:
    """The users of PLAIN in several files. A user in two files has the password of the first one."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Read them. Raises SecretFileError."""
        self._files = [UsersFile(path) for path in paths]

    def password(self, user: str) -> str | None:
        """Return a user's password; None: there is no such user."""
        found = (file.password(user) for file in self._files)
        return next((password for password in found if password is not None), None)


class CredentialSource(Protocol):
    """SCRAM credentials of the cluster's users. Peers cause reads before they are authenticated, so reads must be bounded."""

    async def credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential; None: there is none. Raises CloseConnection when it cannot be read."""

    async def shapes(self, mechanism: str) -> Mapping[CredentialShape, int]:
        """Count the users' credentials by shape. Raises CloseConnection when they cannot be read."""


class PlainUsers(Protocol):
    """The users of PLAIN: a UsersFiles, or those of a login module in the settings."""

    def password(self, user: str) -> str | None:
        """Return a user's password; None: there is no such user."""


class ListenerCredentials:
    """Credentials of all mechanisms. Implements Credentials of kafka_wire.net."""

    def __init__(self, users: PlainUsers | None, scram: CredentialSource) -> None:
        self._users = users
        self._scram = scram

    async def plain_password(self, user: str) -> str | None:
        """Return a user's password from the file; None: there is no such user."""
        return None if self._users is None else self._users.password(user)

    async def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential; None: there is none. Raises CloseConnection when it cannot be read."""
        return None if len(user) > MAX_USER_CHARS else await self._scram.credential(mechanism, user)

    async def scram_shapes(self, mechanism: str) -> Mapping[CredentialShape, int]:
        """Count the users' credentials by shape. Raises CloseConnection when they cannot be read."""
        return await self._scram.shapes(mechanism)
