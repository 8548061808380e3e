"""OAUTHBEARER: RFC 7628 and KIP-255."""

import pytest

from kafka_wire.sasl.oauthbearer import MAX_TOKEN_CHARACTERS, start_oauthbearer_client
from kafka_wire.sasl.steps import Authenticated, SaslFailed


def test_the_client_sends_its_token_and_the_reply_is_empty() -> None:
    """RFC 7628, section 3.1: a GS2 header and key-value pairs, each ended by a byte 1."""
    step = start_oauthbearer_client("header.claims.signature")

    assert step.reply == b"n,,\x01auth=Bearer header.claims.signature\x01\x01"
    assert step.state.take(b"").state == Authenticated("")


def test_a_rejection_is_acknowledged_and_then_final() -> None:
    """RFC 7628, section 3.2.3: the server reports the error as JSON, and waits for a byte 1 before it fails the exchange."""
    step = start_oauthbearer_client("token").state.take(b'{"status":"invalid_token"}')

    assert step.reply == b"\x01"
    with pytest.raises(SaslFailed, match=r'the server rejected the token: {"status":"invalid_token"}'):
        step.state.take(b"")


@pytest.mark.parametrize(
    "token", ["", "two words", "line\n", "a\x01auth=Bearer b", "ü", "x" * (MAX_TOKEN_CHARACTERS + 1)]
)
def test_text_that_is_no_token_is_refused_and_not_quoted(token: str) -> None:
    """RFC 6750, section 2.1: b64token."""
    with pytest.raises(SaslFailed, match="is not valid") as caught:
        start_oauthbearer_client(token)
    assert not token or token not in caught.value.reason
