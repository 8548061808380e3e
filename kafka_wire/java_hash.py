"""Hash and length of Java's strings. By the hash Kafka finds a group's coordinator and orders the keys of some documents."""


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: base 31 over UTF-16 units, as 32 unsigned bits.

    >>> java_hash("11")
    1568
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def java_length(text: str) -> int:
    r"""Return Java's String.length: the number of UTF-16 units.

    >>> java_length("a"), java_length("\U0001f600")
    (1, 2)
    """
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2
