"""The shells that carry effects out of a job's machines, and events in: the queue, the store, user
code.
"""
