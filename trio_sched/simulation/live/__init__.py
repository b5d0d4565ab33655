"""What is listed of a running cluster."""
