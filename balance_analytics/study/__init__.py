"""What is uneven, growing or full soon: pure functions over arrays. Leaves out where the arrays come from."""
