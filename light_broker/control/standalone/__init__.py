"""Control plane of a broker that is alone: it keeps the metadata in a file of its own (ADR 50).

`state` is the content of the file, `topics` and `configs` decide on changes, `control` carries them out.
"""
