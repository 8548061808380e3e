"""Files with secrets: read only if they are small and other users have no access to them.

The owner's group may read them: Kubernetes mounts secrets with this mode into pods that do not run as root.
"""

import stat
from pathlib import Path

MAX_SECRET_BYTES = 1_048_576
"""The limit of a Kubernetes Secret; a larger file is a wrong path."""
_FORBIDDEN = stat.S_IRWXO | stat.S_IWGRP


class SecretFileError(ValueError):
    """A file of secrets cannot be used; the message names the file and the reason, and contains nothing of the file."""


def read_secret(path: Path) -> str:
    """Return the text of a file. Raises SecretFileError."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & _FORBIDDEN:
                raise SecretFileError(
                    f"{path} has the mode {mode:o}: others may read it, or its group write it; make it 600 or 640"
                )
            data = file.read(MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise SecretFileError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_SECRET_BYTES:
        raise SecretFileError(f"{path} has over {MAX_SECRET_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SecretFileError(f"{path} is not UTF-8 text") from None


def read_password(path: Path) -> str:
    """Return the one line of a file with a password or token; a newline at its end is not part of it. Raises SecretFileError."""
    password = read_secret(path).removesuffix("\n").removesuffix("\r")
    if not password or "\n" in password:
        raise SecretFileError(f"{path} must contain one line, the password or token")
    return password


def read_users(path: Path) -> dict[str, str]:
    """Return passwords by user of a file with lines USER:PASSWORD; a line that begins with # is ignored.

    Raises SecretFileError, which names a line only by its number.
    """
    users: dict[str, str] = {}
    for number, line in enumerate(read_secret(path).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, password = line.partition(":")
        if not (user and colon and password):
            raise SecretFileError(f"line {number} of {path} is not USER:PASSWORD")
        if user in users:
            raise SecretFileError(f"line {number} of {path} names the user {user!r} again")
        users[user] = password
    return users
