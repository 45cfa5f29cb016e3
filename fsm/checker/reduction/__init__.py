"""Partial-order reduction: steps that do not depend on each other are not taken in all orders."""
