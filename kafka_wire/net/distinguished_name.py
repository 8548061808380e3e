"""Subject of a client certificate, formatted as Java formats it, because Kafka's ACLs name that text.

Source: X500Principal.getName() (RFC 2253), as used by DefaultKafkaPrincipalBuilder. Unlike in Java, a subject that cannot be decoded
without loss is rejected. OpenSSL has verified the certificate before; all lengths are still checked here. principal_rules maps the
subject to a principal.
"""

from collections.abc import Iterator

_SEQUENCE, _SET, _OBJECT_IDENTIFIER, _VERSION = 0x30, 0x31, 0x06, 0xA0
_ELEMENTS_BEFORE_SUBJECT = 4
"""Serial number, signature algorithm, issuer and validity. An optional version precedes them."""
_UTF8, _BMP = 0x0C, 0x1E
_ASCII_TAGS = frozenset({0x13, 0x14, 0x16, 0x1B})
"""PrintableString, T61String, IA5String, GeneralString. Java formats all other types, including UniversalString, as hexadecimal."""
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""Attribute types with a keyword in RFC 2253. All others are formatted as object identifiers, with hexadecimal values."""
_ESCAPED = frozenset(',=+<>#;"\\')


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises ValueError."""
    (_, signed, _), *_ = _elements(_only(certificate, _SEQUENCE))
    elements = [(tag, whole) for tag, _, whole in _elements(signed) if tag != _VERSION]
    if len(elements) <= _ELEMENTS_BEFORE_SUBJECT:
        raise ValueError("the certificate has no subject")
    return name_text(elements[_ELEMENTS_BEFORE_SUBJECT][1])


def name_text(name: bytes) -> str:
    """Return an X.501 name in DER as text, its last part first. Raises ValueError."""
    parts = [
        "+".join(_attribute_text(attribute) for _, attribute, _ in _elements(_checked(tag, _SET, content)))
        for tag, content, _ in _elements(_only(name, _SEQUENCE))
    ]
    return ",".join(reversed(parts))


def _attribute_text(attribute: bytes) -> str:
    (type_tag, type_bytes, _), (value_tag, value, whole_value) = _elements(attribute)
    oid = _oid_text(_checked(type_tag, _OBJECT_IDENTIFIER, type_bytes))
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value_tag not in {_UTF8, _BMP, *_ASCII_TAGS}:
        return f"{keyword or oid}=#{whole_value.hex()}"
    return f"{keyword}={_escape(_decode(value_tag, value, keyword))}"


def _decode(tag: int, value: bytes, keyword: str) -> str:
    """Decode a string as Java does, which interprets the bytes of every type as UTF-8. Raises ValueError.

    If the bytes mean something else, different subjects become the same text, and one gets the permissions of the other: invalid UTF-8,
    non-ASCII characters in a type that encodes them differently, and a BMPString whose two-byte characters Java reads as two
    characters each. Such subjects are rejected.
    """
    if tag == _UTF8:
        return _checked_text(value, "utf-8", keyword)
    text = _checked_text(value, "ascii", keyword)
    if tag == _BMP and (len(value) % 2 or any(value[::2])):
        raise ValueError(f"{keyword} of the certificate's subject is a BMPString with characters outside ASCII")
    return text


def _checked_text(value: bytes, encoding: str, keyword: str) -> str:
    try:
        return value.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(f"{keyword} of the certificate's subject is not {encoding.upper()} text") from None


def _escape(text: str) -> str:
    inner = text.strip(" \r")
    lead = len(text) - len(text.lstrip(" \r"))
    escaped = "".join("\\" + char if char in _ESCAPED else "\\00" if char == "\0" else char for char in inner)
    around = ["\\" + char for char in text[:lead]], ["\\" + char for char in text[lead + len(inner) :]]
    return "".join(around[0]) + escaped + "".join(around[1])


def _oid_text(data: bytes) -> str:
    numbers = [0]
    for byte in data:
        numbers[-1] = numbers[-1] << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(0)
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:-1]]))


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield tag, content, and all bytes of each element. Raises ValueError for a malformed element."""
    at = 0
    while at < len(data):
        if at + 2 > len(data):
            raise ValueError("the certificate ends within an element")
        tag, length, start = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4 or start + size > len(data):
                raise ValueError("the certificate has an element with an invalid length")
            length, start = int.from_bytes(data[start : start + size], "big"), start + size
        if start + length > len(data):
            raise ValueError("the certificate ends within an element")
        yield tag, data[start : start + length], data[at : start + length]
        at = start + length


def _only(data: bytes, tag: int) -> bytes:
    elements = list(_elements(data))
    if len(elements) != 1:
        raise ValueError(f"the certificate has {len(elements)} elements where one is expected")
    return _checked(elements[0][0], tag, elements[0][1])


def _checked(found: int, expected: int, content: bytes) -> bytes:
    if found != expected:
        raise ValueError(f"the certificate has an element {found:#x} where {expected:#x} is expected")
    return content
