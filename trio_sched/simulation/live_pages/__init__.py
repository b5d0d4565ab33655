"""Live pages of clusters that are simulated, or followed without a scheduler of ours."""
