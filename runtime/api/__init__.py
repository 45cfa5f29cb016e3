"""What users of the runtime implement, call and are given."""
