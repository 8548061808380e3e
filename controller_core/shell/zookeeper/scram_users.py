"""SCRAM credentials in ZooKeeper, read at a bounded rate, since peers cause these reads before they are authenticated.

A flood of login attempts causes a few reads per second, whatever names it uses: the list of all users and each user's configuration
are cached and read again when they are older than FRESH_S. Source: ZkConfigManager, CredentialProvider.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping

from kafka_wire.net.server import CloseConnection
from kafka_wire.sasl import scram_decoy, scram_keys
from kafka_zookeeper import formats, paths
from kafka_zookeeper.session import Node, ZooKeeperError, ZooKeeperSession

log = logging.getLogger(__name__)

FRESH_S = 0.2
"""Maximum age of cached reads: the delay after which a created, changed or deleted user takes effect."""
SHAPES_FRESH_S = 60.0
"""Maximum age of the shapes of all users' credentials: reading them takes one read for each user."""
MAX_SAMPLED = 1_000
"""Users whose credentials are read for the shapes."""
MAX_KEPT = 1_000
"""Users whose configuration is cached: the ones read last."""
UNKNOWN_SLOTS = 64
"""Maximum number of reads for unknown users every FRESH_S."""

Config = Mapping[str, str]


class ScramUsers:
    """The users in /config/users. Implements CredentialSource."""

    def __init__(
        self, session: Callable[[], ZooKeeperSession | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`session` returns the current session with ZooKeeper, if there is one."""
        self._session = session
        self._clock = clock
        self._names: tuple[float, frozenset[str]] | None = None
        """The time of the last read, and the sanitized names."""
        self._configs: OrderedDict[str, tuple[float, Config]] = OrderedDict()
        self._shapes: tuple[float, Mapping[str, Counter[scram_decoy.CredentialShape]]] | None = None
        """The time of the last read, and the shapes by mechanism."""
        self._unknown: dict[int, tuple[float, None]] = {}
        """The time of the last read for unknown users, by slot."""
        self._reading = asyncio.Lock()
        """Held by the one task that reads; all others wait for its result."""

    async def credential(self, mechanism: str, user: str) -> scram_keys.ScramCredential | None:
        """Return a user's credential, or None. Raises CloseConnection when ZooKeeper cannot be read."""
        name = formats.sanitize(user)
        async with self._reading:
            session = self._session()
            if session is None:
                raise CloseConnection("no session with ZooKeeper, which has the SCRAM credentials")
            try:
                is_known = name in await self._known_names(session)
                config = await (self._config(session, name) if is_known else self._no_config(session, name))
            except ZooKeeperError as error:
                raise CloseConnection(f"failed to read SCRAM credentials: {error}") from error
        return _credential(name, config, mechanism)

    async def shapes(self, mechanism: str) -> Mapping[scram_decoy.CredentialShape, int]:
        """Count the users' credentials by shape."""
        async with self._reading:
            session = self._session()
            if session is not None and self._is_stale(self._shapes, SHAPES_FRESH_S):
                try:
                    self._shapes = (self._clock(), await self._read_shapes(session))
                except ZooKeeperError as error:
                    raise CloseConnection(f"failed to read SCRAM credentials: {error}") from error
            return {} if self._shapes is None else self._shapes[1].get(mechanism, {})

    async def _known_names(self, session: ZooKeeperSession) -> frozenset[str]:
        if self._names is None or self._is_stale(self._names, FRESH_S):
            found = await session.children(f"{paths.CONFIG}/{formats.EntityType.USERS}")
            self._names = (self._clock(), frozenset(found or ()))
        return self._names[1]

    async def _config(self, session: ZooKeeperSession, name: str) -> Config:
        known = self._configs.get(name)
        if known is None or self._is_stale(known, FRESH_S):
            path = _path(name)
            known = (self._clock(), _decode(path, await session.get(path)))
            self._configs[name] = known
            self._configs.move_to_end(name)
            if len(self._configs) > MAX_KEPT:
                self._configs.popitem(last=False)
        return known[1]

    async def _no_config(self, session: ZooKeeperSession, name: str) -> Config:
        """Take as long as for a known user, so that timing does not reveal which names exist, at a bounded rate."""
        slot = hash(name) % UNKNOWN_SLOTS
        if self._is_stale(self._unknown.get(slot), FRESH_S):
            await session.get(f"{paths.CONFIG}/{formats.EntityType.USERS}")
            self._unknown[slot] = (self._clock(), None)
        return {}

    async def _read_shapes(self, session: ZooKeeperSession) -> Mapping[str, Counter[scram_decoy.CredentialShape]]:
        names = sorted(await self._known_names(session))[:MAX_SAMPLED]
        user_paths = [_path(name) for name in names]
        shapes: dict[str, Counter[scram_decoy.CredentialShape]] = {}
        for name, path, node in zip(names, user_paths, await session.multi_get(user_paths), strict=True):
            config = _decode(path, node)
            for mechanism in config:
                if (credential := _credential(name, config, mechanism)) is not None:
                    shapes.setdefault(mechanism, Counter())[scram_decoy.shape_of(credential)] += 1
        return shapes

    def _is_stale(self, read: tuple[float, object] | None, fresh_s: float) -> bool:
        return read is None or self._clock() - read[0] > fresh_s


def _path(name: str) -> str:
    return paths.config(formats.EntityType.USERS, name)


def _decode(path: str, node: Node | None) -> Config:
    try:
        return {} if node is None else formats.decode_config(path, node.data)
    except formats.FormatError as error:
        log.warning("Failed to decode SCRAM credential; it is not usable", extra={"path": path, "error": str(error)})
        return {}


def _credential(name: str, config: Config, mechanism: str) -> scram_keys.ScramCredential | None:
    if mechanism not in config:
        return None
    try:
        return scram_keys.decode_credential(config[mechanism])
    except ValueError as error:
        log.warning(
            "Failed to decode SCRAM credential; it is not usable", extra={"path": _path(name), "error": str(error)}
        )
        return None
