"""Objects, lists and watch events from bytes; what cannot be decoded costs itself only."""
