"""Tables of all metrics: name, labels, stability, help; `families` has the types that they are made of."""
