"""Log lines as kube-scheduler writes them, and the thread that writes them."""
