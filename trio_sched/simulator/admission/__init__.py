"""What admission plugins of kube-apiserver that are on by default change or refuse."""
