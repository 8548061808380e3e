"""Credentials of listeners: PLAIN's users in a file, SCRAM's from a source."""

from pathlib import Path

from kafka_node.security.credentials import MAX_USER_CHARS, ListenerCredentials, UsersFiles
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


def test_plain_users_of_several_files_are_all_known(tmp_path: Path) -> None:
    """A user in two of them has the password of the first; each file is read again when it changes."""
    paths = [tmp_path / "own", tmp_path / "further"]
    for path, text in zip(paths, ("steward:own\n", "steward:other\nalice:hers\n"), strict=True):
        path.write_text(text)
        path.chmod(0o600)
    users = UsersFiles(paths)
    before = [users.password(user) for user in ("steward", "alice", "bob")]
    paths[1].write_text("alice:changed\nbob:his\n")

    assert before == ["own", "hers", None]
    assert [users.password(user) for user in ("steward", "alice", "bob")] == ["own", "changed", "his"]
