"""Rules for devices and claims to them (the group resource.k8s.io)."""
