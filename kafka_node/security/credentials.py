"""Where listeners look users up: PLAIN's in a file, SCRAM's in ZooKeeper, where Kafka's own tools keep them.

Both are looked up at each authentication: the file is read when it has changed, ZooKeeper a few times a second at the most.
Source: PlainServerCallbackHandler, CredentialProvider, ZkConfigManager. Leaves out what is done with what is found.
"""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from controller_core.shell.security.scram_users import ScramUsers
from controller_core.shell.security.secret_files import SecretFileError, read_users
from kafka_wire.sasl.scram_decoy import CredentialShape
from kafka_wire.sasl.scram_keys import ScramCredential
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

MAX_USER_CHARS = 1_024
"""RFC 4616 asks for 255 bytes; a longer name is not looked for in ZooKeeper."""

_Stamp = tuple[int, int, int]


class UsersFile:
    """The users of PLAIN. A file that has become unreadable or malformed leaves those of before in force."""

    def __init__(self, path: Path) -> None:
        """Read it. Raises SecretFileError."""
        self._path = path
        self._stamp = self._look()
        self._users = read_users(path)

    def password(self, user: str) -> str | None:
        """Give a user's password; None: there is no such user."""
        try:
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                self._users = read_users(self._path)
                log.info(
                    "the users of PLAIN were read again", extra={"path": str(self._path), "users": len(self._users)}
                )
        except SecretFileError as error:
            log.error("the users of PLAIN cannot be read again: those of before stay", extra={"why": str(error)})
        return self._users.get(user)

    def _look(self) -> _Stamp:
        """Tell what differs when the file was written or replaced."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise SecretFileError(f"{self._path} cannot be read: {error.strerror}") from error
        return found.st_ino, found.st_size, found.st_mtime_ns


class ListenerCredentials:
    """What the listeners ask (kafka_wire.net's Credentials)."""

    def __init__(
        self,
        users: UsersFile | None,
        session: Callable[[], ZooKeeperSession | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`session` gives the present session with ZooKeeper, if there is one."""
        self._users = users
        self._scram = ScramUsers(session, clock)

    async def plain_password(self, user: str) -> str | None:
        """Look into the file."""
        return None if self._users is None else self._users.password(user)

    async def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Look into /config/users. Raises CloseConnection when that cannot be read."""
        return None if len(user) > MAX_USER_CHARS else await self._scram.credential(mechanism, user)

    async def scram_shapes(self, mechanism: str) -> Mapping[CredentialShape, int]:
        """Tell what users' credentials look like. Raises CloseConnection when /config/users cannot be read."""
        return await self._scram.shapes(mechanism)
