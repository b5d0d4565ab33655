"""Small clusters in which pods come one after the other, for comparing schedulers and API servers.

They say nothing of the answer. No two nodes are equally good for a pod, so that there is one answer and no chance.
"""
