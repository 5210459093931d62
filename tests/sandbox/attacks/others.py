"""Attacks on other processes, and processes that outlive the program that started them."""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, python, shell

_DECOY = python(
    "other processes",
    Against.BOTH,
    [
        ("signal", "import os; os.kill(decoy, 10)"),
        ("signal by number", "call(62, decoy, 10)"),
        ("signal its thread", "call(200, decoy, 10)"),
        ("signal a thread of its group", "call(234, decoy, decoy, 10)"),
        ("queued signal", "call(129, decoy, 10, bits(128, pack('iii', 10, 0, -1)))"),
        ("queued signal to a thread", "call(297, decoy, decoy, 10, bits(128, pack('iii', 10, 0, -1)))"),
        ("signal through a hold", "call(424, call(434, decoy, 0), 10, None, 0)"),
        ("signal its group", "import os; os.kill(-decoy, 10)"),
        ("signal through a pipe", "import os, fcntl; r, w = os.pipe(); fcntl.fcntl(r, 8, decoy); fcntl.fcntl(r, 10, 10)\n"
         "fcntl.fcntl(r, 4, os.O_ASYNC | os.O_NONBLOCK); os.write(w, b'x')"),
        ("signal through a socket", "import socket, fcntl, os; a, b = socket.socketpair(); fcntl.fcntl(a, 8, decoy)\n"
         "fcntl.fcntl(a, 10, 10); fcntl.fcntl(a, 4, os.O_ASYNC | os.O_NONBLOCK); b.send(b'x')"),
        ("stop it", "import os; os.kill(decoy, 19)"),
        ("end it", "import os; os.kill(decoy, 9)"),
        ("ask for it", "import os; os.kill(decoy, 0); won()"),
        ("hold it", "won(call(434, decoy, 0) >= 0)"),
        ("take its descriptor", "tell(os.pread(call(438, call(434, decoy, 0), descriptor, 0), 99, 0))"),
        ("compare with it", "won(call(312, os.getpid(), decoy, 1, 0, 0) >= 0)"),
        ("read its memory", "b = bits(99); call(310, decoy, pack('QQ', ctypes.addressof(b), 64), 1, pack('QQ', address, 64), 1, 0)\n"
         "tell(b.raw)"),
        ("write its memory", "b = bits(99, b'x'); call(311, decoy, pack('QQ', ctypes.addressof(b), 1), 1, pack('QQ', address, 1), 1, 0)"),
        ("read its memory as a file", "f = open(f'/proc/{decoy}/mem', 'rb', 0); f.seek(address); tell(f.read(64))"),
        ("write its memory as a file", "f = open(f'/proc/{decoy}/mem', 'r+b', 0); f.seek(address); f.write(b'x')"),
        ("read memory of its caller", "f = open(f'/proc/{caller}/mem', 'rb', 0); f.seek(caller_address); tell(f.read(64))"),
        ("vm of its caller", "b = bits(99)\n"
         "call(310, caller, pack('QQ', ctypes.addressof(b), 64), 1, pack('QQ', caller_address, 64), 1, 0); tell(b.raw)"),
        ("trace it", "won(call(101, 16, decoy, 0, 0) == 0); os.waitpid(decoy, 0x40000000); call(101, 17, decoy, 0, 0)"),
        ("seize it", "won(call(101, 0x4206, decoy, 0, 0) == 0)"),
        ("words of its memory", "call(101, 16, decoy, 0, 0); os.waitpid(decoy, 0x40000000); b = bits(64)\n"
         "for n in range(0, 64, 8): call(101, 1, decoy, address + n, ctypes.byref(b, n))\n"
         "call(101, 17, decoy, 0, 0); tell(b.raw)"),
        ("limits of it, read", "b = bits(16); call(302, decoy, 7, None, b); won(int.from_bytes(b.raw[:8], 'little') == files)"),
        ("limits of it, set", "call(302, decoy, 4, pack('QQ', 0, 0), None)"),
        ("cores of it, read", "won(call(204, decoy, 128, bits(128)) > 0)"),
        ("cores of it, set", "call(203, decoy, 8, pack('Q', 1))"),
        ("priority of it, read", "won(call(140, 0, decoy) >= 0)"),
        ("priority of it, set", "call(141, 0, decoy, 19)"),
        ("policy of it, read", "won(call(145, decoy) >= 0)"),
        ("policy of it, set", "call(144, decoy, 3, bits(8))"),
        ("parameters of it, read", "won(call(143, decoy, bits(8)) == 0)"),
        ("attributes of it, read", "won(call(315, decoy, bits(64), 64, 0) == 0)"),
        ("attributes of it, set", "call(314, decoy, bits(48, pack('II', 48, 3)), 0)"),
        ("slice of it", "won(call(148, decoy, bits(16)) == 0)"),
        ("order of its disk, read", "won(call(252, 1, decoy) >= 0)"),
        ("order of its disk, set", "call(251, 1, decoy, 3 << 13)"),
        ("group of it", "won(call(121, decoy) > 0)"),
        ("session of it", "won(call(124, decoy) > 0)"),
        ("capabilities of it", "won(call(125, pack('Ii', 0x20080522, decoy), bits(24)) == 0)"),
        ("locks of it", "won(call(274, decoy, bits(8), bits(8)) == 0)"),
        ("pages of it", "won(call(279, decoy, 1, (ctypes.c_void_p * 1)(address & ~4095), None, (ctypes.c_int * 1)(), 2) >= 0)"),
        ("move its pages", "won(call(256, decoy, 8, pack('Q', 1), pack('Q', 1)) >= 0)"),
        ("advise its memory", "won(call(440, call(434, decoy, 0), pack('QQ', address & ~4095, 4096), 1, 20, 0) > 0)"),
        ("count its instructions", "a = bits(128, pack('IIQQQQQ', 1, 128, 1, 0, 0, 0, 1 << 5)); won(call(298, a, decoy, -1, -1, 0) >= 0)"),
        ("clock of it", "won(call(228, (~decoy << 3) | 2, bits(16)) == 0)"),
        ("its namespace", "import os; f = os.open(f'/proc/{decoy}/ns/net', 0); won(f >= 0)"),
    ],
)  # fmt: skip
_FILES_OF_IT = ("cmdline", "maps", "status", "stat", "statm", "limits", "io", "auxv", "comm", "wchan", "smaps", "pagemap",
                "personality", "sched", "schedstat", "syscall", "mountinfo", "cgroup", "oom_score", "loginuid", "numa_maps",
                "timers", "uid_map", "stack", "fdinfo/0", "net/tcp", "patch_state", "smaps_rollup")  # fmt: skip
_WRITABLE_OF_IT = (("comm", "x"), ("oom_score_adj", "900"), ("coredump_filter", "0"), ("timerslack_ns", "77777"))
_FILES = (
    *python("files of processes", Against.BOTH,
            [(f"its {name}", f"f = open(f'/proc/{{decoy}}/{name}', 'rb'); f.read(1); won()") for name in _FILES_OF_IT]),
    *python("files of processes", Against.BOTH,
            [(f"its {name}, set", f"open(f'/proc/{{decoy}}/{name}', 'w').write('{word}')") for name, word in _WRITABLE_OF_IT]),
    *python("files of processes", Against.BOTH,
            [(f"its {name} as a link", f"import os; tell(os.readlink(f'/proc/{{decoy}}/{name}')); won()") for name in ("cwd", "exe", "root")]),
    *python("files of processes", Against.BOTH,
            [("its descriptors", "import os; won(os.listdir(f'/proc/{decoy}/fd'))"),
             ("its threads", "import os; won(os.listdir(f'/proc/{decoy}/task'))"),
             ("its maps of files", "import os; won(os.listdir(f'/proc/{decoy}/map_files'))")]),
)  # fmt: skip
_START = python(
    "start processes",
    Against.PYTHON,
    [
        ("fork", "import os\nif os.fork() == 0: os._exit(0)\nwon()"),
        ("fork by number", "r = call(57)\nif r == 0: call(231, 0)\nwon(r > 0)"),
        ("clone by number", "r = call(56, 17, 0, 0, 0, 0)\nif r == 0: call(231, 0)\nwon(r > 0)"),
        ("clone3", "r = call(435, bits(88, pack('QQQQQ', 0, 0, 0, 0, 17)), 88)\nif r == 0: call(231, 0)\nwon(r > 0)"),
        ("execute", "import os; os.execv('/bin/echo', ['echo', 'WON', nonce])"),
        ("execute by descriptor", "import os; os.execve(os.open('/bin/echo', 0), ['echo', 'WON', nonce], {})"),
        ("execute by loader", "import os; os.execv('/lib64/ld-linux-x86-64.so.2', ['ld', '/bin/echo', 'WON', nonce])"),
        ("execute memory", "import os; f = os.memfd_create('x'); os.write(f, open('/bin/echo', 'rb').read())\n"
         "os.execve(f, ['echo', 'WON', nonce], {})"),
        ("spawn", "import os; won(os.posix_spawn('/bin/true', ['true'], {}) > 0)"),
        ("a shell", "import os; won(os.system('true') == 0)"),
        ("a child by library", "import subprocess; won(subprocess.run(['true']).returncode == 0)"),
        ("a process by library", "import multiprocessing as m; p = m.Process(target=print); p.start(); won(p.pid)"),
        ("a pool", "import concurrent.futures as c; won(c.ProcessPoolExecutor(1).submit(int).result() == 0)"),
        ("a thread", "import threading; threading.Thread(target=won).start()"),
        ("a thread below", "import _thread, time; _thread.start_new_thread(won, ()); time.sleep(.2)"),
        ("a terminal", "import pty; won(pty.fork()[0] >= 0)"),
        ("be traced", "won(call(101, 0, 0, 0, 0) == 0)"),
        ("a new session", "won(call(109, 0, 0) == 0 or call(112) > 0)"),
        ("cores of its own", "import os; os.sched_setaffinity(0, {0}); won()"),
        ("nicer", "import os; won(os.nice(1) >= 0)"),
        ("its personality", "won(call(135, 0x0040000) >= 0)"),
        ("lower limits", "import resource as r; r.setrlimit(r.RLIMIT_CPU, (50, 60)); won()"),
        ("another filter", "won(call(317, 2, 0, bits(4, pack('I', 0x7fff0000))) == 0)"),
        ("its name", "won(libc.prctl(15, b'x', 0, 0, 0) == 0)"),
        ("whom it outlives", "won(libc.prctl(1, 0, 0, 0, 0) == 0)"),
        ("who adopts", "won(libc.prctl(36, 1, 0, 0, 0) == 0)"),
        ("memory that is looked into", "won(libc.prctl(4, 1, 0, 0, 0) == 0)"),
    ],
)  # fmt: skip
_SLEEP = "import os; os.execv('/bin/sleep', [nonce, '6'])"
_LEFT = python(
    "leftovers",
    Against.BOTH,
    [
        ("child", f"import os\nif os.fork() == 0: {_SLEEP}"),
        ("child in a new session", f"import os\nif os.fork() == 0:\n    os.setsid(); {_SLEEP}"),
        ("grandchild", f"import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    {_SLEEP}"),
        ("silent grandchild", "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
         f"    os.closerange(0, 64); {_SLEEP}"),
        ("deaf child", "import os, signal\nif os.fork() == 0:\n    os.setsid()\n    for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
         f"    {_SLEEP}"),
        ("spawned", "import os; os.posix_spawn('/bin/sleep', [nonce, '6'], {}, setsid=True)"),
        ("child of a library", "import subprocess; subprocess.Popen([nonce, '6'], executable='/bin/sleep', start_new_session=True)"),
        ("stopped child", f"import os\np = os.fork()\nif p == 0:\n    os.setsid(); {_SLEEP}\nimport time; time.sleep(.2); os.kill(p, 19)"),
        ("after its end", f"import os, atexit\ndef f():\n    import os\n    if os.fork() == 0:\n        os.setsid(); {_SLEEP}\natexit.register(f)"),
        ("by a shell", "import os; os.system(f\"bash -c 'exec -a {nonce} sleep 6' >/dev/null 2>&1 &\")"),
        ("past its deadline", f"import os, time\nif os.fork() == 0:\n    os.setsid(); {_SLEEP}\ntime.sleep(3)"),
        ("killed by itself", f"import os, time\nif os.fork() == 0:\n    os.setsid(); {_SLEEP}\nos.kill(os.getpid(), 9)"),
    ],
    seconds=1.0,
)  # fmt: skip
_SHELL = (
    *shell("leftovers", [
        ("sh: background", "bash -c 'exec -a '$nonce' sleep 6' & true"),
        ("sh: nohup", "nohup bash -c 'exec -a '$nonce' sleep 6' >/dev/null 2>&1 & true"),
        ("sh: setsid", "setsid bash -c 'exec -a '$nonce' sleep 6' >/dev/null 2>&1 </dev/null & true"),
        ("sh: deaf", "(trap '' TERM INT HUP; setsid bash -c 'exec -a '$nonce' sleep 6') >/dev/null 2>&1 & sleep 3"),
        ("sh: perl", "perl -MPOSIX -e 'fork and exit; setsid; fork and exit; exec {\"/bin/sleep\"} $ARGV[0], 6' $nonce"),
    ], seconds=1.0),
    *shell("other processes", [
        ("sh: signal", "kill -USR1 $decoy"),
        ("sh: ask", "kill -0 $decoy && echo WON $nonce"),
        ("sh: stop", "kill -STOP $decoy"),
        ("sh: list", "ps -eo pid | grep -qw $decoy && echo WON $nonce"),
        ("sh: find", "ls -d /proc/$decoy && echo WON $nonce"),
        ("sh: nicer", "renice 19 $decoy"),
        ("sh: cores", "taskset -pc 0 $decoy"),
        ("sh: limits", "prlimit --pid $decoy --core=0:0"),
        ("sh: trace", "timeout 1 strace -p $decoy -o /dev/null & sleep .5; grep -q 'TracerPid:.*[1-9]' /proc/$decoy/status && echo WON $nonce"),
    ]),
)  # fmt: skip
ATTACKS: tuple[Attack, ...] = (*_DECOY, *_FILES, *_START, *_LEFT, *_SHELL)
