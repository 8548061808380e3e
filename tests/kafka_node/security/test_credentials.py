"""Credentials of listeners: PLAIN's users in a file, SCRAM's from a source."""

from kafka_node.security.credentials import MAX_USER_CHARS, ListenerCredentials
from tests.kafka_node.security.samples import NoScramUsers


async def test_a_name_of_no_sane_length_is_not_looked_for() -> None:
    """The source is not asked for a name that no tool can have written."""
    users = NoScramUsers()
    credentials = ListenerCredentials(None, users)

    assert await credentials.scram_credential("SCRAM-SHA-256", "a" * (MAX_USER_CHARS + 1)) is None
    assert users.asked == []
    assert await credentials.scram_credential("SCRAM-SHA-256", "a" * MAX_USER_CHARS) is None
    assert len(users.asked) == 1


async def test_without_a_file_plain_has_no_users() -> None:
    """A listener that offers SCRAM only."""
    assert await ListenerCredentials(None, NoScramUsers()).plain_password("CN=a") is None
