"""System calls by number, and the allowlists and denylists of a sandbox.

Programs that compute and print may make only the calls of `COMPUTING` (and `READING` and `WRITING` where their files
are bounded); shells and other programs all but `DENIED` and `MISSING`. The numbers are those of x86-64: the kernel's
arch/x86/entry/syscalls/syscall_64.tbl.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

# memory, what is open already, signals of its own, clocks, probability, its own end
COMPUTING = {
    **{"read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11},
    **{"brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "readv": 19},
    **{"writev": 20, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "pause": 34},
    **{"nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "exit": 60, "gettimeofday": 96},
    **{"getrlimit": 97, "getrusage": 98, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108},
    **{"getppid": 110, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "clock_gettime": 228},
    **{"clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "pselect6": 270, "ppoll": 271},
    **{"getrandom": 318, "rseq": 334},
}
# files by name, which another mechanism must bound
READING = {
    **{"open": 2, "stat": 4, "lstat": 6, "access": 21, "getcwd": 79, "readlink": 89, "getdents64": 217, "openat": 257},
    **{"newfstatat": 262, "readlinkat": 267, "faccessat": 269, "statx": 332, "faccessat2": 439},
}
WRITING = {
    **{"ftruncate": 77, "chdir": 80, "rename": 82, "mkdir": 83, "rmdir": 84, "unlink": 87, "mkdirat": 258},
    **{"unlinkat": 263, "renameat": 264, "renameat2": 316},
}
_KEYS = {"add_key": 248, "request_key": 249, "keyctl": 250}
_OTHERS = {  # looking into processes, or into the kernel
    **{"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "process_madvise": 440},
    **{"pidfd_getfd": 438, "process_mrelease": 448, "move_pages": 279, "migrate_pages": 256, "syslog": 103},
    **{"perf_event_open": 298, "bpf": 321, "userfaultfd": 323, "fanotify_init": 300, "fanotify_mark": 301},
    **{"lookup_dcookie": 212, "sysfs": 139, "ustat": 136, "quotactl": 179, "quotactl_fd": 443, "acct": 163},
}
_VIEWS = {  # another view of the machine: mounts, roots, namespaces, files without their names
    **{"mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428, "move_mount": 429},
    **{"fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "statmount": 457},
    **{"listmount": 458, "open_tree_attr": 467, "unshare": 272, "setns": 308, "listns": 470},
    **{"name_to_handle_at": 303, "open_by_handle_at": 304},
}
_MACHINE = {  # what belongs to the machine alone
    **{"kexec_load": 246, "kexec_file_load": 320, "create_module": 174, "init_module": 175, "delete_module": 176},
    **{"finit_module": 313, "get_kernel_syms": 177, "query_module": 178, "nfsservctl": 180, "swapon": 167},
    **{"swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173},
    **{"vhangup": 153, "modify_ldt": 154, "_sysctl": 156, "settimeofday": 164, "clock_settime": 227},
    **{"clock_adjtime": 305, "adjtimex": 159, "uselib": 134},
}
DENIED = {**_KEYS, **_OTHERS, **_VIEWS, **_MACHINE}
# libraries do without: rings, memory that no total sees, and newer calls whose arguments a filter cannot read
MISSING = {
    **{"clone3": 435, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "memfd_create": 319},
    **{"memfd_secret": 447, "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "msgget": 68, "mq_open": 240},
}
# what sends open files: on their way nobody sees them, nor how much of a folder they hold
SENDING = {"sendmsg": 46, "sendmmsg": 307}
ABSENT = {"clone3": 435, "openat2": 437}  # for a program that computes: libraries fall back on the older ones


@dataclass(frozen=True)
class Argument:
    """Condition on one argument: it is one of `values`, or has any of those bits."""

    place: int
    values: tuple[int, ...]
    error: int
    is_allowed: bool = True  # or those are refused, and all others let through
    are_bits: bool = False


def _lends_rights(place: int) -> Argument:
    """Of a file's mode: whoever ran it later, out here, would have the rights of its owner."""
    return Argument(place, (0o6000,), errno.EPERM, is_allowed=False, are_bits=True)


_ITSELF = Argument(0, (0,), errno.EPERM)  # pid 0: the process that asks
_CLOCK = Argument(0, tuple(range(12)), errno.EINVAL)  # the machine's and its own: others name processes by their ids
COMPUTING_IF = {
    16: (Argument(1, (0x5401, 0x5450, 0x5451), errno.ENOTTY),),  # ioctl: is it a terminal; close on exec or not
    72: (
        Argument(1, (0, 1, 2, 3, 1030), errno.EPERM),
    ),  # fcntl: copies and flags; no signals, no locks, no pipes' sizes
    204: (_ITSELF,),  # sched_getaffinity
    **dict.fromkeys((228, 229, 230), (_CLOCK,)),  # clock_gettime, clock_getres, clock_nanosleep
    302: (_ITSELF, Argument(2, (0,), errno.EPERM)),  # prlimit64: read limits of its own, set none
}
WRITING_IF = {2: (_lends_rights(2),), 257: (_lends_rights(3),)}  # open, openat
_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_FAMILY = Argument(0, (1, 2, 10), errno.EAFNOSUPPORT)  # of sockets: of the machine, of IPv4 and of IPv6
_PROTOCOL = Argument(2, (0, 1, 6, 17, 58), errno.EPROTONOSUPPORT)  # the usual one, ICMP, TCP, UDP
ALL_KINDS_IF = {
    16: (Argument(1, (0x5412, 0x541C, 0x5423), errno.EPERM, is_allowed=False),),  # ioctl: TIOCSTI, TIOCLINUX, TIOCSETD
    41: (_FAMILY, _PROTOCOL),  # socket
    53: (_FAMILY, _PROTOCOL),  # socketpair
    56: (Argument(0, (_NAMESPACES,), errno.EPERM, is_allowed=False, are_bits=True),),  # clone
    **{
        number: (_lends_rights(place),)
        for number, place in ((2, 2), (85, 1), (257, 3), (90, 1), (91, 1), (268, 2), (452, 2))
    },
    135: (Argument(0, (0, 0xFFFFFFFF), errno.EPERM),),  # personality: the usual one, or the question
    285: (
        Argument(0, (), errno.EOPNOTSUPP),
    ),  # fallocate: disk taken faster than it is counted; libraries write instead
    302: (_ITSELF,),  # prlimit64: not of the process that bubblewrap keeps inside
}
