"""From names in the configuration to plugins that can be called.

In: entry points and resolved profiles. Out: plugin classes, their arguments as values of the types that they ask for,
and a `Profile` with all hooks bound, in the order in which they are called.
"""
