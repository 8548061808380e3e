"""What may be wrong with bytes or values at the wire: the exceptions of this package.

Left out: Kafka's error codes, which are values inside messages (errors.py).
"""


class WireError(ValueError):
    """Anything that bytes from a peer, or a value on its way to one, may be refused for."""


class CodecError(WireError):
    """A message that cannot be encoded or decoded.

    `message` and `version` name the schema, `field` the path to the culprit as far as it is known ("topics[2].name").
    """

    def __init__(self, reason: str, *, message: str = "", version: int | None = None, field: str = "") -> None:
        self.reason = reason
        self.message = message
        self.version = version
        self.field = field
        where = message if version is None else f"{message} v{version}"
        super().__init__(": ".join(part for part in (where, field, reason) if part))


class TooManyElements(CodecError):  # noqa: N818 -- named for what was found
    """A request with more array elements than its decoder may build."""
