"""What becomes of all pods of a workload: requests with which all of them run, and fewer of them."""
