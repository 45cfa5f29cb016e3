"""Hints on new files: what a queue of an object store, the kernel, or the order of names tells.

Holds no protocol: the machine `discovery` decides when a queue is asked, and what follows.
"""
