"""The engines of a search: machine code, plain Python, and the machines themselves."""
