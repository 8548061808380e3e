"""Files of secrets: who may read them, what is in them, and that none of it is told."""

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
def test_a_file_of_ones_own_is_read(mode: int, tmp_path: Path) -> None:
    """The group may read: Kubernetes gives secrets so to pods that are not root."""
    assert read_password(secret(tmp_path / "password", b"secret\n", mode)) == "secret"


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o601, 0o666])
def test_a_file_that_others_may_read_is_refused(mode: int, tmp_path: Path) -> None:
    """The mode is told, and what to do."""
    with pytest.raises(SecretFileError, match=rf"has the mode {mode:o}.*make it 600"):
        read_secret(secret(tmp_path / "password", b"secret", mode))


@pytest.mark.parametrize("data", [b"", b"\n", b"two\nlines", b"\xff", b"x" * (MAX_SECRET_BYTES + 1)])
def test_what_is_no_password_is_refused_without_being_shown(data: bytes, tmp_path: Path) -> None:
    """One line of UTF-8, of a size that a secret has."""
    with pytest.raises(SecretFileError) as refused:
        read_password(secret(tmp_path / "password", data))
    assert "two" not in str(refused.value)


def test_a_missing_file_is_told_by_its_name(tmp_path: Path) -> None:
    """Not by a traceback."""
    with pytest.raises(SecretFileError, match=r"absent cannot be read: No such file"):
        read_secret(tmp_path / "absent")


def test_users_stand_one_a_line(tmp_path: Path) -> None:
    """A password may hold colons, blanks and anything else."""
    path = secret(tmp_path / "users", "# a comment\nalice:a:b c\n\nbøb:#ü \n".encode())

    assert read_users(path) == {"alice": "a:b c", "bøb": "#ü "}


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"alice", "line 1"), (b"a:b\n:x", "line 2"), (b"a:b\nc:", "line 2"), (b"a:hunter2\na:c", "'a' again")],
)
def test_a_malformed_line_is_told_by_its_number(data: bytes, why: str, tmp_path: Path) -> None:
    """Not by its text."""
    with pytest.raises(SecretFileError, match=why) as refused:
        read_users(secret(tmp_path / "users", data))
    assert "hunter2" not in str(refused.value)


def test_users_are_read_again_when_the_file_changes(tmp_path: Path) -> None:
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
