"""PodTopologySpread and InterPodAffinity."""
