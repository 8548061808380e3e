"""Fetch 4 to 18: requests and responses by hand, with the codec's bodies (dicts) and errors.

    decode_request(frame: bytes | memoryview, header: RequestHeader) -> Body
    encode_response(version: int, correlation_id: int, body: Body) -> Response
    decode_response(version: int, frame: bytes | memoryview) -> tuple[int, Body]

`records` of a response that is encoded are bytes, a memoryview, a FileSlice (file_slice.py) or None, and none of them is copied; those of a
decoded response are views of its frame.
"""
