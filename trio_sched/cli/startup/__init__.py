"""From flags and files to the settings of the daemon."""
