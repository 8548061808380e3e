"""Errors of metadata records."""


class MetadataError(Exception):
    """A metadata record that cannot be read, applied or written; the message is a sentence and has the offset if there is one."""
