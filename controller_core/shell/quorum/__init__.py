"""Quorum mode's shell: settings, files and sockets of a controller in a KRaft quorum."""
