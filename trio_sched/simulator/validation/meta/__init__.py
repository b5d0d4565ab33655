"""What rules of all kinds are made of: names, metadata, selectors, shapes, decoding, the problems of fields."""
