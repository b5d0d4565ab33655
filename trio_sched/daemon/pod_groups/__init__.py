"""What happens to the pods of a group: attempts, binding together, eviction, the group's conditions."""
