"""Values of a properties file of a controller, for tests."""

NODE_ID = 1

STATIC = {
    "process.roles": "controller",
    "node.id": str(NODE_ID),
    "listeners": "CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093,2@host.example:9093",
    "log.dirs": "/data/one,/data/two",
}
"""A controller of a quorum with static voters."""

DYNAMIC = {name: value for name, value in STATIC.items() if name != "controller.quorum.voters"} | {
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093,[::1]:9094"
}
"""The same controller, with its voters in the log."""


def without(values: dict[str, str], *names: str) -> dict[str, str]:
    """Return the values without these names."""
    return {name: value for name, value in values.items() if name not in names}
