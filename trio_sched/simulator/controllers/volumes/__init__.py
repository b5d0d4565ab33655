"""The controllers of volumes and their claims."""
