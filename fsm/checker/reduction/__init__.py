"""Partial-order reduction: of steps that do not depend on each other, only some orders are taken."""
