"""Figures of ours beside those of the peers, and the soak; not shipped, and no test."""
