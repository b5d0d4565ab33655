"""CEL, in the dialect of Kubernetes: expressions are parsed, checked, and compiled to closures."""
