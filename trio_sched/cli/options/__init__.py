"""Options that several commands have in common, with what they mean, and the progress of long commands."""
