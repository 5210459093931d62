"""The sandbox: where text that a model wrote is run, and what no process inside it can leave.

`ran` says what may be used and what came of it. The walls: `seccomp` (with the lists of `calls`), `landlock`, `mounts`
of one's own, and `stranger`, the user that root becomes. `confine` raises them around a Python program, which sees the
`view`; `warm` is the interpreter that forks one process for each program, and `python` our end of it. `bubble` runs
shells and programs of all kinds on a `stage`. `totals` of all processes are watched by `overseen`, and bounded by a
`cgroup` where one may be made; a folder is `lent`. `plain` is no sandbox: a process without walls, for whoever says so.
"""
