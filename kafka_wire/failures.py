"""Exceptions of encoding and decoding. Kafka's error codes are in errors.py."""


class WireError(ValueError):
    """Bytes that cannot be decoded, or a value that cannot be encoded."""


class CodecError(WireError):
    """A message that cannot be encoded or decoded.

    `message` and `version` name the schema, `field` is the path of the invalid field if known ("topics[2].name").
    """

    def __init__(self, reason: str, *, message: str = "", version: int | None = None, field: str = "") -> None:
        self.reason = reason
        self.message = message
        self.version = version
        self.field = field
        where = message if version is None else f"{message} v{version}"
        super().__init__(": ".join(part for part in (where, field, reason) if part))


class TooManyElements(CodecError):  # noqa: N818 -- names the condition
    """A request with more array elements than its decoder allows."""
