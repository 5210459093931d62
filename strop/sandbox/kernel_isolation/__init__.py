"""Sandbox restrictions that the kernel enforces: users, mounts, system calls, control groups."""
