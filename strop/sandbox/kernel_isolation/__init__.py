"""Walls of a sandbox that the kernel enforces: users, mounts, system calls, control groups."""
