"""Sandbox for programs written by a model: process isolation with seccomp, Landlock, namespaces, cgroups or bubblewrap.

`execution` has the limits and the result of a program. `python/` runs Python programs: `python_pool` is the parent's
end, `warm_interpreter` forks one process per program, which sees the files of `visible_files`; `unconfined_python` is
no sandbox, for users who ask for it. `bubblewrap` runs shells and programs of all kinds in the file system of `layout`.
`kernel_isolation/` has the restrictions: `seccomp` (with the lists of `syscalls`), `landlock`, `mounts`,
`unprivileged_user`, `cgroup`; `confine` applies them. `resource_watch` ends a sandbox whose `resource_totals` exceed
its limits. `writable_folder` is a folder that a sandbox may write to.
"""
