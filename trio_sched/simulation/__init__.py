"""A cluster from files on simulated time: its run, its history, its outcome, comparisons and explanations."""
