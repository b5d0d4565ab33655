"""The controllers of devices and resource claims."""
