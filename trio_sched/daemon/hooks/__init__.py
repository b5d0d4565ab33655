"""How hooks are awaited: asynchronous ones, those that block, and the time that each may take."""
