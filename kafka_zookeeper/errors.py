"""Exceptions of ZooKeeper sessions. The outcome of a transaction is a value (see `writes`)."""


class ZooKeeperError(Exception):
    """A ZooKeeper request failed; the message names the request and the cause."""


class ConnectFailedError(ZooKeeperError):
    """No session could be opened in time."""


class SessionLostError(ZooKeeperError):
    """The session has expired or was closed: open a new one."""


class ConnectionLostError(ZooKeeperError):
    """The connection was lost repeatedly during one read; the session may still exist."""
