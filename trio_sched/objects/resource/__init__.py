"""Kinds of the group resource.k8s.io: claims, slices, classes and taints of devices."""
