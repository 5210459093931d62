"""Trackers of metrics outside of strop; each is an extra, imported when it opens."""
