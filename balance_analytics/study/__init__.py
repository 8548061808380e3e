"""What is uneven, growing or full soon: pure functions over arrays. Leaves out how the arrays are read."""
