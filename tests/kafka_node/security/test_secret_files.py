"""Files with secrets: permissions, formats, and errors that show nothing of the contents."""

from pathlib import Path

import pytest

from kafka_node.security.credentials import UsersFile
from kafka_node.security.secret_files import MAX_SECRET_BYTES, SecretFileError, read_password, read_secret, read_users


def secret(path: Path, data: bytes, mode: int = 0o600) -> Path:
    """Write a file."""
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640, 0o440])
def test_private_file_is_read(mode: int, tmp_path: Path) -> None:
    """The group may read: Kubernetes mounts secrets this way into pods that do not run as root."""
    assert read_password(secret(tmp_path / "password", b"secret\n", mode)) == "secret"


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o601, 0o666])
def test_file_with_wider_permissions_is_rejected(mode: int, tmp_path: Path) -> None:
    """The error names the mode and what to do."""
    with pytest.raises(SecretFileError, match=rf"has the mode {mode:o}.*make it 600"):
        read_secret(secret(tmp_path / "password", b"secret", mode))


@pytest.mark.parametrize("data", [b"", b"\n", b"two\nlines", b"\xff", b"x" * (MAX_SECRET_BYTES + 1)])
def test_invalid_password_file_is_rejected_and_not_shown(data: bytes, tmp_path: Path) -> None:
    """A password is one line of UTF-8 with a limited size."""
    with pytest.raises(SecretFileError) as raised:
        read_password(secret(tmp_path / "password", data))
    assert "two" not in str(raised.value)


def test_missing_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    """Not a traceback."""
    with pytest.raises(SecretFileError, match=r"absent cannot be read: No such file"):
        read_secret(tmp_path / "absent")


def test_users_file_has_one_user_per_line(tmp_path: Path) -> None:
    """A password may contain colons, blanks and any other character."""
    path = secret(tmp_path / "users", "# a comment\nalice:a:b c\n\nbøb:#ü \n".encode())

    assert read_users(path) == {"alice": "a:b c", "bøb": "#ü "}


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"alice", "line 1"), (b"a:b\n:x", "line 2"), (b"a:b\nc:", "line 2"), (b"a:hunter2\na:c", "'a' again")],
)
def test_malformed_line_is_an_error_with_its_number(data: bytes, message: str, tmp_path: Path) -> None:
    """Without its text."""
    with pytest.raises(SecretFileError, match=message) as raised:
        read_users(secret(tmp_path / "users", data))
    assert "hunter2" not in str(raised.value)


def test_users_are_reloaded_when_the_file_changes(tmp_path: Path) -> None:
    """Also when it is replaced, as Kubernetes does; a broken file changes nothing."""
    path = secret(tmp_path / "users", b"alice:one")
    users = UsersFile(path)
    assert (users.password("alice"), users.password("bob")) == ("one", None)

    secret(tmp_path / "next", b"alice:two\nbob:b").replace(path)
    assert (users.password("alice"), users.password("bob")) == ("two", "b")

    secret(tmp_path / "next", b"no users at all").replace(path)
    assert (users.password("alice"), users.password("bob")) == ("two", "b")

    path.unlink()
    assert users.password("alice") == "two"
