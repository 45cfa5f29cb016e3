"""Renderers of machines: state diagrams, transition tables, and who triggers whom.

Everything is derived from the rows and from the text of guards and actions; nothing is drawn by
hand. Draws from `epochgate.fsm` and `epochgate.models` only.
"""
