"""External metric trackers; each is an optional dependency, imported when it opens."""
