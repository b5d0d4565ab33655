"""The pods on nodes, counted by selector and affinity term, per row and topology domain."""
