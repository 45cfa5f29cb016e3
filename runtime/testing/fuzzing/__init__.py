"""User code that numbers what it sends, and the record that a job of it is held against."""
