"""What is stored: objects with resource versions and history, the types that exist, and the clock."""
