"""Body of an HTTP response, up to a limit: it is read before anything is parsed, so an endless response takes no memory."""

import aiohttp

READ_BYTES = 64 * 1024


class ResponseTooLargeError(Exception):
    """A response has more bytes than its reader allows."""


async def read_at_most(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Return the whole body. Raises ResponseTooLargeError, and what aiohttp raises."""
    body = bytearray()
    async for part in response.content.iter_chunked(READ_BYTES):
        body += part
        if len(body) > max_bytes:
            raise ResponseTooLargeError(f"the response has more than {max_bytes} bytes")
    return bytes(body)
