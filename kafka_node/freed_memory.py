"""Memory that the C library's allocator keeps for the next large messages instead of returning it to the kernel.

glibc maps each block above a threshold and returns it when it is freed; below, it returns what is free at the end of its heap above twice the threshold.
With its first threshold each MiB of a large message costs hundreds of page faults, which take longer than all the rest. It raises the threshold to the size
of a mapped block that is freed (mallopt(3), M_MMAP_THRESHOLD). Other C libraries are left as they are.
"""

MIB = 1024 * 1024
MAX_KEPT_BLOCK_BYTES = 31 * MIB
"""glibc's limit is 32 MiB, with its own header of the block."""


def keep_freed_memory(block_bytes: int) -> None:
    """Keep freed blocks of up to this size, and twice as much at the end of the heap."""
    if not 0 < block_bytes <= MAX_KEPT_BLOCK_BYTES:
        raise ValueError(f"blocks of 1 to {MAX_KEPT_BLOCK_BYTES} bytes can be kept, found {block_bytes}")
    bytes(block_bytes)
