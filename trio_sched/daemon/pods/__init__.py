"""What happens to one pod after the decision: reserve, permit, bind, or the report of a failure.

In: decisions of the engine. Out: bindings, conditions, nominations and deletions of victims on the API server.
"""
