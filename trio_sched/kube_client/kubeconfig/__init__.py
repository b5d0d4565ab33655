"""The settings of a client, from a kubeconfig or from inside the cluster."""
