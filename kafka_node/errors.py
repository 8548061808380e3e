"""A refusal in Kafka's terms: error code and message. A value, not an exception: decisions return it."""

from dataclasses import dataclass

from kafka_wire.errors import ErrorCode

MAX_MESSAGE_CHARACTERS = 1_000
"""Enough to name the cause. A string of the protocol has 32,767 bytes at most, and a response may have as many messages as elements."""
CUT = " ... (shortened)"


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason of a refusal."""

    code: ErrorCode
    message: str
    """Shortened if too long: messages repeat data of the caller."""

    def __post_init__(self) -> None:
        if len(self.message) > MAX_MESSAGE_CHARACTERS:
            shortened = f"{self.message[: MAX_MESSAGE_CHARACTERS - len(CUT)]}{CUT}"
            object.__setattr__(self, "message", shortened)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"
