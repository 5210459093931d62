"""Value models: predictions of the return of a task, turn or token."""
