"""The demo: the main functions once, on real components, as a timeline: `make demo`."""
