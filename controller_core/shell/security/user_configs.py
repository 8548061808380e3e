"""Configurations of users as they stand in /config/users: read, and changed in one transaction with the notice to brokers.

Source: ZkAdminManager, AdminZkClient.changeConfigs; unlike these a change is refused if somebody else's came between, and then
made again on what is there. Leaves out what may stand in one (admin.scram).
"""

import asyncio
from collections.abc import Callable, Mapping

from controller_core.model.errors import Failure
from kafka_wire.errors import ErrorCode
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ZooKeeperError
from kafka_zookeeper.formats.configs import EntityType, decode_config, encode_config, encode_config_change, sanitize
from kafka_zookeeper.formats.documents import FormatError
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.writes import Committed, Create, Operation, Refused, RefusedReason, SetData

MAX_ATTEMPTS = 10
"""Times that a change is made anew when others change the same user."""
PAUSE_S = 0.05
"""Pause before it is made anew."""

Config = Mapping[str, str]
Change = Callable[[Config], Config | Failure]
"""Makes a configuration of the present one, or refuses to."""

_RACES = {RefusedReason.BAD_VERSION, RefusedReason.NODE_EXISTS}
_NO_SESSION = Failure(ErrorCode.REQUEST_TIMED_OUT, "There is no session with ZooKeeper at the moment.")


class UserConfigs:
    """Users' configurations; `session` gives the present session with ZooKeeper, if there is one."""

    def __init__(self, session: Callable[[], ZooKeeperSession | None]) -> None:
        self._session = session

    async def change(self, user: str, change: Change) -> Failure | None:
        """Replace a user's configuration by what `change` makes of it; None when that is written."""
        session = self._session()
        if session is None:
            return _NO_SESSION
        path = paths.config(EntityType.USERS, sanitize(user))
        try:
            for _ in range(MAX_ATTEMPTS):
                node = await session.get(path)
                wanted = change({} if node is None else decode_config(path, node.data))
                if isinstance(wanted, Failure):
                    return wanted
                data = encode_config(wanted)
                write: Operation = Create(path, data) if node is None else SetData(path, data, node.version)
                result = await session.multi([write, _notice(user)])
                if isinstance(result, Committed):
                    return None
                if not isinstance(result, Refused):
                    return Failure(
                        ErrorCode.REQUEST_TIMED_OUT, f"the user {user} may be changed or not: the connection went"
                    )
                if result.reason not in _RACES:
                    words = f"the user {user} cannot be written: {result.reason.value} {result.detail}".strip()
                    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, words)
                await asyncio.sleep(PAUSE_S)
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"the user {user} may be changed or not: {error}")
        except FormatError as error:
            return Failure(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"the user {user} cannot be changed: {error.path} is malformed"
            )
        return Failure(ErrorCode.REQUEST_TIMED_OUT, f"others change the user {user} all the time")


def _notice(user: str) -> Operation:
    entity = encode_config_change(f"{EntityType.USERS}/{sanitize(user)}")
    return Create(paths.CONFIG_CHANGE_PREFIX, entity, sequential=True)
