"""What the live page shows: the nodes, the pods that wait, and why, as columns of which only changes are sent."""
