"""A control plane without controllers, etcd and kube-apiserver, for benchmarks, faults, the soak test and tests."""
