"""Rules for the kinds of the core group."""
