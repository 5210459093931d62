"""Environments in child processes: client, worker, process pool, batched observations."""
