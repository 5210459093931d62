"""The box: where text that a model wrote is run, and what no process inside it can leave.

`ran` says what may be used and what came of it, `seccomp` and `landlock` are the two walls, `confine` raises them
around the process that calls it, `warm` is the interpreter that forks one process for each program, `python` is our end
of it, and `bubble` runs shells and programs of all kinds. `plain` is no box: a process without walls, for whoever says
so aloud.
"""
