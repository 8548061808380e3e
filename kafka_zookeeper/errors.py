"""What can go wrong between us and ZooKeeper, apart from a transaction's end, which is a value (see `writes`)."""


class ZooKeeperError(Exception):
    """ZooKeeper did not do what was asked; the message says what, of whom, and why."""


class ConnectFailedError(ZooKeeperError):
    """No session could be opened in time."""


class SessionLostError(ZooKeeperError):
    """The session is over, or was closed by us: open a new one."""


class ConnectionLostError(ZooKeeperError):
    """The connection broke again and again under one read; the session may still live."""
