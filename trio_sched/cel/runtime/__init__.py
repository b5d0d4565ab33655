"""What evaluated expressions work with: activations, operators, costs."""
