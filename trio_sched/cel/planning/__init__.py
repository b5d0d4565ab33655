"""From a checked tree to a closure per node: the program."""
