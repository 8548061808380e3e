"""Produce 3 to 13: requests and responses by hand, with the codec's bodies (dicts) and errors.

Records of a decoded request are views of its frame, without a copy; they stay valid for as long as they are referenced.
"""
