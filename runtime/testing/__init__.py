"""The kit for tests: simulation, fault injection, fuzzing, and the playing of schedules."""
