"""Bundled synthetic environments: text tasks with levels, generated from a seed; a new file here adds one."""
