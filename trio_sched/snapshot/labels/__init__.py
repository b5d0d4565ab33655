"""Labels and selectors, on columns: which pods and nodes match."""
