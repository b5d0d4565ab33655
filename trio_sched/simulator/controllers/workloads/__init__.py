"""The controllers of workloads, which create and delete pods."""
