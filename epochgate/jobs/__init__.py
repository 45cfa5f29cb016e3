"""The pages of a job, and what scripts read of it."""
