"""A handler's way to say that a broker shall answer this request. Leaves out the relay itself: the front has it."""


class RelayInstead(Exception):  # noqa: N818 - no error: another way for the request
    """The request is to be passed on unchanged to a live broker of the same listener, and its answer back."""
