"""Variants of the closed systems that must fail: each leaves out one thing, and shows what it is for."""
