"""Where the values of the metrics come from."""
