"""A cluster of three nodes in three racks, by kind: on a machine with an image registry, or as root on Debian without one."""
