"""Placement of engines: inline, in a local process, or in a Ray actor."""
