"""The listeners of a job: the log, the history on disk, metrics, and what is shown of them."""
