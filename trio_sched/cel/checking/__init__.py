"""Types of all nodes, by the declarations of functions and variables."""
