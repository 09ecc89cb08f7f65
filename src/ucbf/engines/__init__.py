"""Who computes: threads of this process, or a Ray cluster. Both take tasks, and hand results over as they come.

A task is sent when a worker is about to be free, so that neither the driver nor the cluster ever holds all of them, and
what a task costs the driver does not grow with their number. Workers write their results themselves.
"""
