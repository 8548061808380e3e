"""Credentials of listeners: PLAIN's users in a file, SCRAM's from a source."""

from kafka_node.security.credentials import MAX_USER_CHARS, ListenerCredentials
from tests.kafka_node.security.samples import NoScramUsers


async def test_too_long_name_is_not_looked_up() -> None:
    """No tool can have stored a user with this name."""
    users = NoScramUsers()
    credentials = ListenerCredentials(None, users)

    assert await credentials.scram_credential("SCRAM-SHA-256", "a" * (MAX_USER_CHARS + 1)) is None
    assert users.asked == []
    assert await credentials.scram_credential("SCRAM-SHA-256", "a" * MAX_USER_CHARS) is None
    assert len(users.asked) == 1


async def test_plain_has_no_users_without_a_file() -> None:
    """On a listener that offers only SCRAM."""
    assert await ListenerCredentials(None, NoScramUsers()).plain_password("CN=a") is None
