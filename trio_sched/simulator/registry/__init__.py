"""One strategy per kind (defaults, validation, what may change), and the life of objects: create, update, delete."""
