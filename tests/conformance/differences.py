NAMES = frozenset({"unseen","mixed-close","forgotten","orphaned","newest"})
