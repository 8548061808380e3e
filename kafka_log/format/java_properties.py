r"""Java's properties format: parsing, and lines as Java writes them to a character stream.

Kafka reads a properties file as Latin-1; other characters are read as \uXXXX and are not written. Source: java.util.Properties.
"""

import re

_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\$")
"""A line that ends in an odd number of backslashes continues in the next one."""

_PAIR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f\r\n])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    **{character: f"\\{character}" for character in "\\=:#!"},
}

_BLANKS = " \t\f"


def parse_properties(data: bytes) -> dict[str, str]:
    r"""Return the values by name; the last of equal names counts, as in Java. Raises ValueError for a malformed \uXXXX.

    >>> parse_properties(b"# a comment\nlisteners = A://:1,\\\n  B://:2\nnode.id:3")
    {'listeners': 'A://:1,B://:2', 'node.id': '3'}
    """
    found: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        match = _PAIR.match(line)
        assert match is not None, "every part of the pattern may be empty"
        found[_unescape(match["key"])] = _unescape(match["value"])
    return found


def write_property(name: str, value: str) -> str:
    r"""Return the line of one setting, as Java's Properties.store writes it to a character stream.

    >>> write_property("log.dirs", "C:/data")
    'log.dirs=C\\:/data\n'
    """
    key = "".join("\\ " if character == " " else _WRITTEN.get(character, character) for character in name)
    start = len(value) - len(value.lstrip(" "))
    text = "".join(_WRITTEN.get(character, character) for character in value)
    return f"{key}={chr(92) + text if start else text}\n"


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    begun = ""
    is_continued = False
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANKS)
        if not is_continued and (not line or line[0] in "#!"):
            continue
        is_continued = _CONTINUED.search(line) is not None
        begun += line[:-1] if is_continued else line
        if not is_continued:
            lines.append(begun)
            begun = ""
    return [*lines, begun] if begun else lines


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped[0] == "u":
            if len(escaped) == 1:
                raise ValueError("Malformed \\uxxxx encoding.")
            return chr(int(escaped[1:], 16))
        return _CONTROLS.get(escaped, escaped)

    return _ESCAPE.sub(character, text)
