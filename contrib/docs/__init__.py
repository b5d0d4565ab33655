"""What writes documentation from the code."""
