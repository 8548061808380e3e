"""Pages and pictures of a study, out of plain values. Leaves out the study."""
