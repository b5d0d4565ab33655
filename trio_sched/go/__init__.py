"""The words and grammars of Go that several rooms need: quoted text, numbers, durations, CSV, base64, errors.

In: values and texts. Out: what Go prints for them or reads from them, to the letter, because users compare it with
kube-scheduler. Nothing here knows Kubernetes.
"""
