"""Demo of the main functions on real components, printed as a timeline: `make demo`."""
