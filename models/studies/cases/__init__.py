"""Public bugs of other projects as small closed systems: each as it was mended, and broken again."""
