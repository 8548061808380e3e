"""Hash of Java's strings, by which Kafka finds a group's coordinator and orders the keys of some documents."""


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
