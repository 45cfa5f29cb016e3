"""The interfaces that users of the runtime implement, call and are given."""
