"""Standard streams, exit codes and signals."""
