"""Worlds: a user's own coordinators, operators and committers in a simulated job, driven through
random or all schedules, with claims about them.

Users import the names from `epochgate.testing`.
"""
