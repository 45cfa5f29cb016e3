"""Going through the states of a system by hand, in a browser or a terminal."""
