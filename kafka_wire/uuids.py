"""Ids as text, as Kafka writes them: 16 bytes in URL-safe Base64 without padding. Source: Kafka's Uuid."""

import base64
import binascii
import uuid

_BYTES = 16


def encode_uuid(value: uuid.UUID) -> str:
    """Return an id as Kafka writes it: 22 characters.

    >>> encode_uuid(uuid.UUID(int=1))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> uuid.UUID:
    """Return the id in a text, with or without padding; raises ValueError for any other text.

    >>> decode_uuid("AAAAAAAAAAAAAAAAAAAAAQ").int
    1
    """
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):  # ValueError: not ASCII
        data = b""
    if len(data) != _BYTES:
        raise ValueError(f"{text!r} is not an id of 22 characters in URL-safe Base64")
    return uuid.UUID(bytes=data)
