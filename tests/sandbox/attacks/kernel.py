"""Attacks on the kernel: calls that few programs need, what only root may do, devices, settings.

Nothing is changed even where it is allowed: a setting is opened and not written, a call is made with arguments that are
refused only after the question of permission.
"""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, python, shell

_CALLS = python(
    "calls of the kernel",
    Against.BOTH,
    [
        ("rings", "won(call(425, 4, bits(200)) >= 0)"),
        ("rings that poll", "won(call(425, 4, bits(200, pack('III', 0, 0, 2))) >= 0)"),
        ("faults of its own", "won(call(323, 1) >= 0)"),
        ("faults of the kernel", "won(call(323, 0) >= 0)"),
        ("maps of the kernel", "won(call(321, 0, pack('IIII', 2, 4, 4, 1) + bytes(112), 72) >= 0)"),
        ("programs of the kernel", "i = ctypes.create_string_buffer(bytes.fromhex('b7000000000000009500000000000000')); l = bits(4, b'GPL')\n"
         "won(call(321, 5, pack('IIQQ', 1, 2, ctypes.addressof(i), ctypes.addressof(l)) + bytes(96), 120) >= 0)"),
        ("its notes of programs", "reached(call(321, 11, bytes(120), 120))"),
        ("counters of the machine", "a = bits(128, pack('IIQQQQQ', 1, 128, 0, 0, 0, 0, 0)); won(call(298, a, -1, 0, -1, 0) >= 0)"),
        ("counters of its own", "a = bits(128, pack('IIQQQQQ', 1, 128, 0, 0, 0, 0, 1 << 5)); won(call(298, a, 0, -1, -1, 0) >= 0)"),
        ("its log", "reached(call(103, 10, None, 0))"),
        ("its log, read", "won(call(103, 3, bits(100), 100) > 0)"),
        ("trace its parent", "p = os.getppid(); won(p and call(101, 0x4206, p, 0, 0) == 0)"),
        ("compare with its parent", "won(os.getppid() and call(312, os.getpid(), os.getppid(), 1, 0, 0) >= 0)"),
        ("memory of its parent", "import os; won(os.getppid() and open(f'/proc/{os.getppid()}/mem', 'r+b').fileno() >= 0)"),
        ("limits of its parent, set", "p, b = os.getppid(), bits(16); won(p and call(302, p, 4, None, b) == 0 and call(302, p, 4, b, None) == 0)"),
        ("user namespace", "won(call(272, 0x10000000) == 0)"),
        ("user namespace by clone", "r = call(56, 0x10000011, 0, 0, 0, 0)\nif r == 0: call(231, 0)\nwon(r > 0)"),
        ("user namespace by clone3", "r = call(435, bits(88, pack('QQQQQ', 0x10000000, 0, 0, 0, 17)), 88)\nif r == 0: call(231, 0)\nwon(r > 0)"),
        ("user and mount namespace", "won(call(272, 0x10020000) == 0)"),
        ("user and network namespace", "won(call(272, 0x50000000) == 0)"),
        ("user and process namespace", "won(call(272, 0x30000000) == 0)"),
        ("mount namespace", "won(call(272, 0x00020000) == 0)"),
        ("network namespace", "won(call(272, 0x40000000) == 0)"),
        ("process namespace", "won(call(272, 0x20000000) == 0)"),
        ("namespace of names", "won(call(272, 0x04000000) == 0)"),
        ("namespace of messages", "won(call(272, 0x08000000) == 0)"),
        ("namespace of groups", "won(call(272, 0x02000000) == 0)"),
        ("namespace of time", "won(call(272, 0x00000080) == 0)"),
        ("join a network", "won(call(308, call(2, f'/proc/{decoy}/ns/net'.encode(), 0, 0), 0) == 0)"),
        ("join mounts", "won(call(308, call(2, f'/proc/{decoy}/ns/mnt'.encode(), 0, 0), 0) == 0)"),
        ("join a process", "won(call(308, call(434, decoy, 0), 0x40000000) == 0)"),
        ("mount", "reached(call(165, b'none', b'/tmp', b'no-such-type', 0, 0))"),
        ("bind a folder", "reached(call(165, b'/no/such/folder', b'/tmp', None, 4096, 0))"),
        ("unmount", "reached(call(166, b'/usr/bin', 4))"),
        ("change the root of mounts", "reached(call(155, b'/no/such/folder', b'/no/such/folder'))"),
        ("open a file system", "won(call(430, b'tmpfs', 0) >= 0)"),
        ("pick a file system", "won(call(433, -100, b'/', 0) >= 0)"),
        ("copy a tree of mounts", "won(call(428, -100, b'/', 1) >= 0)"),
        ("attributes of a mount", "reached(call(442, -100, b'/', 0, pack('QQQQ', 0, 0, 0, 0), 32))"),
        ("another root", "won(call(161, b'/tmp') == 0)"),
        ("swap", "reached(call(167, b'/no/such/file', 0))"),
        ("end swap", "reached(call(168, b'/no/such/file'))"),
        ("accounts", "reached(call(163, b'/no/such/folder/file'))"),
        ("load a module", "reached(call(175, bits(8), 8, b''))"),
        ("load a module by file", "reached(call(313, 0, b'', 0))"),
        ("unload a module", "reached(call(176, b'no-such-module', 0x800))"),
        ("restart", "reached(call(169, 0, 0, 0, None))"),
        ("the clock", "won(call(164, None, None) == 0)"),
        ("the host's name", "n = os.uname().nodename.encode(); won(call(170, n, len(n)) == 0)"),
        ("the domain's name", "reached(call(171, b'', -1))"),
        ("ports of the processor", "won(call(172, 3) == 0)"),
        ("one port of the processor", "won(call(173, 0x80, 1, 1) == 0)"),
        ("hang up", "won(call(153) == 0)"),
        ("watch all files", "won(call(300, 0, 0) >= 0)"),
        ("another user", "won(call(117, 1, 1, 1) == 0)"),
        ("root again", "won(call(117, 0, 0, 0) == 0 and os.getuid() == 0)"),
        ("another group", "won(call(119, 1, 1, 1) == 0)"),
        ("other groups", "won(call(116, 0, None) == 0)"),
        ("user of files", "call(122, 1); won(call(122, 1) == 1)"),
        ("capabilities", "d = bits(24); call(125, pack('Ii', 0x20080522, 0), d); won(any(d.raw[:8]) and call(126, pack('Ii', 0x20080522, 0), d) == 0)"),
        ("keep capabilities", "won(libc.prctl(28, 0x10, 0, 0, 0) == 0)"),
        ("a real time policy", "won(call(144, 0, 1, pack('i', 1)) == 0)"),
        ("a deadline policy", "won(call(314, 0, bits(48, pack('IIQiIQQQ', 48, 6, 0, 0, 0, 10**6, 10**7, 10**7)), 0) == 0)"),
        ("a higher priority", "won(call(141, 0, 0, -5) == 0)"),
        ("first at the disk", "won(call(251, 1, 0, 1 << 13) == 0)"),
        ("higher limits", "b = bits(16); call(302, 0, 7, None, b); n = int.from_bytes(b.raw[8:], 'little'); won(call(302, 0, 7, pack('QQ', n + 1, n + 1), None) == 0)"),
        ("memory that stays", "won(call(151, 1) == 0)"),
        ("priority of all its user's", "won(call(140, 2, 0) >= 0 and os.path.isdir(f'/proc/{decoy}'))"),
        ("calls of another width", "won(call(0x40000000 + 39) > 0)"),
        ("calls of 32 bits", "libc.mmap.restype = ctypes.c_void_p; a = libc.mmap(None, 4096, 7, 0x22, -1, 0)\n"
         "c = bytes.fromhex('53b827000000bb00000000b90000000031dbcd805bc3')\n"
         "n = call(9, 0x10000000, 4096, 3, 0x32, -1, 0); ctypes.memmove(n, secret.encode() + b'\\0', len(secret) + 1)\n"
         "c = bytes.fromhex('53b805000000bb00000010b900000000cd805bc3'); ctypes.memmove(a, c, len(c))\n"
         "tell(os.read(ctypes.CFUNCTYPE(ctypes.c_int)(a)(), 99))"),
    ],
)  # fmt: skip
_SETTINGS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/panic", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/pid_max",
    "/proc/sys/fs/lease-break-time", "/proc/sys/kernel/randomize_va_space", "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/hostname", "/proc/sys/kernel/dmesg_restrict", "/proc/sys/fs/protected_symlinks",
    "/proc/sys/fs/file-max", "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/threads-max", "/proc/sys/kernel/perf_event_paranoid",
    "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/fs/cgroup/cpu/tasks", "/sys/kernel/rcu_expedited",
)  # fmt: skip
_SECRETS = ("/proc/kmsg", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/timer_list", "/proc/kpagecount", "/proc/kpageflags",
            "/proc/kpagecgroup", "/etc/shadow", "/sys/kernel/notes", "/sys/kernel/vmcoreinfo",
            "/sys/devices/virtual/dmi/id/product_name", "/sys/block", "/proc/pagetypeinfo")  # fmt: skip
_DEVICES = ("kmsg", "fuse", "kvm", "net/tun", "userfaultfd", "vsock", "loop-control", "autofs", "btrfs-control", "hwrng",
            "cpu_dma_latency", "vga_arbiter", "vcs", "zram0", "loop0", "vda", "mem", "port")  # fmt: skip
# a file that is hidden may be there, and empty; what the log holds is opened and not taken
_HAS = (
    "import os; f = os.open({path!r}, os.O_RDONLY | os.O_NONBLOCK)\n"
    "won('kmsg' in {path!r} or (os.listdir(f) if os.path.isdir({path!r}) else os.read(f, 1)))"
)
_OPEN = "import os; won(os.open({path!r}, {mode} | os.O_NONBLOCK | os.O_NOCTTY) >= 0)"
_FILES = (
    *python("settings of the kernel", Against.BOTH,
            [(f"{path}, to write", _OPEN.format(path=path, mode="os.O_WRONLY")) for path in _SETTINGS]),
    *python("settings of the kernel", Against.BOTH,
            [(f"{path}, to read", _HAS.format(path=path)) for path in _SECRETS]),
    *python("settings of the kernel", Against.BOTH,
            [("addresses of the kernel", "won([l for l in open('/proc/kallsyms') if not l.startswith('0' * 16)][:1])"),
             ("places of devices", "won([l for l in open('/proc/iomem') if not l.lstrip().startswith('00000000-00000000')][:1])"),
             ("folders of the kernel", "import os; won(os.listdir('/sys/kernel'))"),
             ("devices of the kernel", "import os; won(os.listdir('/sys/devices'))")]),
    *python("devices", Against.BOTH,
            [(f"/dev/{name}", _OPEN.format(path=f"/dev/{name}", mode="os.O_RDONLY")) for name in _DEVICES]),
    *python("devices", Against.BOTH,
            [("names of disks", "import os; won('vda' in os.listdir('/dev') or 'sda' in os.listdir('/dev'))"),
             ("a device by number", "import os; n = '/tmp/' + left; os.mknod(n, 0o20600, os.makedev(1, 11)); won(os.open(n, os.O_RDONLY | os.O_NONBLOCK) >= 0)"),
             ("a disk by number", "import os; n = '/tmp/' + left; os.mknod(n, 0o60600, os.stat('/').st_dev); won()")]),
)  # fmt: skip
_OF_PYTHON = python(
    "calls of the kernel",
    Against.PYTHON,
    [
        ("limits of its parent", "p = os.getppid(); won(p and call(302, p, 4, None, bits(16)) == 0)"),
        ("cores of its parent", "p = os.getppid(); won(p and call(204, p, 128, bits(128)) > 0)"),
        (
            "memory of its parent, to read",
            "import os; won(os.getppid() and open(f'/proc/{os.getppid()}/mem', 'rb').fileno() >= 0)",
        ),
        ("pages between files", "won(call(278, 1, pack('QQ', ctypes.addressof(bits(8)), 0), 1, 0) >= 0)"),
        ("orders of files", "won(call(206, 1, bits(8)) == 0)"),
        ("rules of files", "won(call(444, None, 0, 1) >= 0)"),
        ("tables of the processor", "won(call(154, 0, bits(64), 64) >= 0)"),
        ("where memory lies", "won(call(238, 0, None, 0) == 0)"),
        ("memory that is locked", "won(call(149, ctypes.addressof(bits(8)), 8) == 0)"),
        ("keys of pages", "reached(call(330, 0, 0))"),
        ("barriers", "won(call(324, 0, 0) >= 0)"),
        ("which core", "won(call(309, bits(8), None, None) == 0)"),
        ("timers", "won(call(222, 1, None, bits(8)) == 0)"),
        ("the clock's correction", "won(call(159, bits(256)) >= 0)"),
        ("metrics of the machine", "won(call(99, bits(200)) == 0)"),
        ("all disks", "won(call(162) == 0)"),
        ("files of a process", "won(call(436, 50, 60, 0) == 0)"),
        ("its list of modules", "won(call(461, bits(256), bits(4, pack('I', 256)), 0) >= 0)"),
    ],
)
_SHELL = shell(
    "settings of the kernel",
    [
        ("sh: core pattern", "exec 3>/proc/sys/kernel/core_pattern && echo WON $nonce"),
        ("sh: panic", "exec 3>/proc/sys/kernel/panic && echo WON $nonce"),
        ("sh: sys", "ls /sys/kernel && echo WON $nonce"),
        ("sh: log", "dmesg | head -1 | grep -q . && echo WON $nonce"),
        ("sh: namespace", "unshare -U true && echo WON $nonce"),
        ("sh: root of a namespace", "unshare -Urm sh -c 'mount -t tmpfs none /tmp' && echo WON $nonce"),
        ("sh: mount", "unshare -m mount -t tmpfs none /tmp && echo WON $nonce"),
        ("sh: enter", "nsenter -t $decoy -n true && echo WON $nonce"),
        ("sh: another root", "chroot / true && echo WON $nonce"),
        ("sh: trace", "timeout 1 strace -o /dev/null -p $PPID & sleep .4; grep -q 'TracerPid:.*[1-9]' /proc/$PPID/status && echo WON $nonce"),
        ("sh: disk", "ls /dev/vda /dev/sda 2>/dev/null | grep -q . && echo WON $nonce"),
        ("sh: host of the root", "[ $(id -u) = 0 ] && awk '$2==0{f=1}END{exit !f}' /proc/self/uid_map && echo WON $nonce"),
    ],
)  # fmt: skip
ATTACKS: tuple[Attack, ...] = (*_CALLS, *_FILES, *_OF_PYTHON, *_SHELL)
