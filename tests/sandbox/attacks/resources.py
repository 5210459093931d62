"""Attacks that take more than they may: memory by every kind, processes, disk, descriptors, output, time.

Each takes a fixed amount, several times what is allowed and little for a machine. Who holds it for a second has won: a
watcher that looks now and then has had its time.
"""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, python, shell

_HOLD = "import time; time.sleep(1.2); won()"
_MEMORY = python(
    "memory",
    Against.BOTH,
    [
        ("at once", f"x = bytearray(b'x') * (400 << 20); {_HOLD}"),
        ("by and by", f"x = [bytearray(b'x') * (1 << 20) for _ in range(400)]; {_HOLD}"),
        ("by text", f"x = 'a' * (400 << 20); {_HOLD}"),
        ("by a map", "libc.mmap.restype = ctypes.c_void_p; a = libc.mmap(None, ctypes.c_size_t(400 << 20), 3, 0x8022, -1, 0)\n"
         f"if a != 2**64 - 1: {_HOLD}"),
        ("by a shared map", "libc.mmap.restype = ctypes.c_void_p; a = libc.mmap(None, ctypes.c_size_t(400 << 20), 3, 0x8021, -1, 0)\n"
         f"if a != 2**64 - 1: {_HOLD}"),
        ("by files in memory", "import os, time\nfor _ in range(20):\n    f = os.memfd_create('x'); n = 0\n"
         "    while n < 20 << 20: n += os.write(f, bytes(1 << 20))\ntime.sleep(1.2); won()"),
        ("by room of files in memory", "import os\nfor _ in range(20): os.posix_fallocate(os.memfd_create('x'), 0, 20 << 20)\n" + _HOLD),
        ("by shared memory", "for _ in range(20):\n    i = libc.shmget(0, ctypes.c_size_t(20 << 20), 0o1600); libc.shmat.restype = ctypes.c_void_p\n"
         "    a = libc.shmat(i, None, 0); libc.shmctl(i, 0, None)\n    assert i >= 0\n    ctypes.memset(a, 1, 20 << 20); libc.shmdt(ctypes.c_void_p(a)) if 0 else None\n" + _HOLD),
        ("by children", "import os, time\nn = [os.fork() for _ in range(3)]\nx = bytearray(b'x') * (50 << 20); time.sleep(1.2); won()"),
        ("by files in /dev/shm and /tmp", "import os, time\nfor n in range(8):\n    for p in ('/dev/shm/', '/tmp/'):\n"
         "        with open(f'{p}{left}{n}', 'wb') as f: [f.write(bytes(1 << 20)) for _ in range(25)]\ntime.sleep(1.2); won()\n"
         "for n in range(8): [os.unlink(f'{p}{left}{n}') for p in ('/dev/shm/', '/tmp/')]"),
        ("by pipes", "import os, fcntl, time\nt = 0\nfor _ in range(400):\n    r, w = os.pipe(); os.set_blocking(w, False)\n"
         "    try: fcntl.fcntl(w, 1031, 1 << 20)\n    except OSError: pass\n    try:\n        while True: t += os.write(w, bytes(1 << 16))\n"
         "    except BlockingIOError: pass\ntime.sleep(1.2); won(t > 300 << 20)"),
        ("by sockets", "import socket, time\nt, k = 0, []\nfor _ in range(400):\n    a, b = socket.socketpair(); k += [a, b]\n"
         "    for s in (a, b):\n        s.setblocking(False); s.setsockopt(1, 32 if 0 else 7, 1 << 24)\n        try:\n"
         "            while True: t += s.send(bytes(1 << 16))\n        except BlockingIOError: pass\ntime.sleep(1.2); won(t > 120 << 20)"),
        ("by children with files in memory", "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        f = os.memfd_create('x')\n"
         "        for _ in range(60): os.write(f, bytes(1 << 20))\n        time.sleep(2); os._exit(0)\n"
         "won(all(os.waitpid(-1, 0)[1] == 0 for _ in range(4)))"),
        ("by a passed descriptor", "import os, socket, time\na, b = socket.socketpair()\nfor _ in range(20):\n    f = os.memfd_create('x')\n"
         "    for _ in range(20): os.write(f, bytes(1 << 20))\n    socket.send_fds(a, [b'x'], [f]); os.close(f)\ntime.sleep(1.2); won()"),
        (
            "by sockets in flight",
            "import socket, time\nt, k = 0, []\nfor n in range(900):\n    if n % 100 == 0: k.append(socket.socketpair())\n"
            "    c, d = socket.socketpair(); c.setblocking(False)\n    try:\n        while True: t += c.send(bytes(1 << 16))\n"
            "    except BlockingIOError: pass\n    socket.send_fds(k[-1][0], [b'x'], [d.fileno()]); c.close(); d.close()\n"
            "time.sleep(1.2); won(t > 140 << 20)",
        ),
        ("by threads", "import threading, time\nthreading.stack_size(64 << 20)\nx = []\ndef f(): x.append(bytearray(b'x') * (20 << 20)); time.sleep(1.5)\n"
         "t = [threading.Thread(target=f) for _ in range(20)]; [e.start() for e in t]; time.sleep(1.3); won(len(x) == 20)"),
        ("by its break", "libc.sbrk.restype = ctypes.c_void_p; a = libc.sbrk(ctypes.c_long(400 << 20))\n"
         f"if a != 2**64 - 1: ctypes.memset(a, 1, 400 << 20); {_HOLD}"),
        ("by secret memory", "import os; libc.mmap.restype = ctypes.c_void_p; f = call(447, 0); assert f >= 0; os.truncate(f, 4 << 20)\n"
         "a = libc.mmap(None, 4 << 20, 3, 0x8001, f, 0); won(a != 2**64 - 1)"),
    ],
    memory=64 << 20,
)  # fmt: skip
_PROCESSES = python(
    "number of processes",
    Against.BOTH,
    [
        ("children", "import os, time\nn = 0\nfor _ in range(700):\n    p = os.fork()\n    if p == 0: time.sleep(2.5); os._exit(0)\n    n += 1\n"
         "time.sleep(.8); won(n >= 700)"),
        ("threads", "import _thread, time\n_thread.stack_size(1 << 16)\nn = 0\nfor _ in range(700):\n    _thread.start_new_thread(time.sleep, (2,)); n += 1\n"
         "time.sleep(.8); won(n >= 700)"),
        ("grandchildren", "import os, time\nfor _ in range(26):\n    if os.fork() == 0:\n        for _ in range(26):\n            if os.fork() == 0: time.sleep(2.5); os._exit(0)\n"
         "        time.sleep(1.5); os._exit(7)\ntime.sleep(.8); won(all(os.waitstatus_to_exitcode(os.wait()[1]) == 7 for _ in range(26)))"),
    ],
    memory=512 << 20,
)  # fmt: skip
_DISK = python(
    "disk",
    Against.BOTH,
    [
        ("one large file", "import os; f = open('f', 'wb')\nfor _ in range(300): f.write(bytes(1 << 20))"),
        ("several files", "for n in range(20):\n    with open(f'f{n}', 'wb') as f: f.write(bytes(15 << 20))"),
        ("room for files", "import os\nfor n in range(20): os.posix_fallocate(os.open(f'f{n}', os.O_CREAT | os.O_RDWR), 0, 15 << 20)"),
        ("many files", "import os\nfor n in range(34000): os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY))"),
        ("many small files", "for n in range(34000):\n    with open(f'f{n}', 'w') as f: f.write('x' * 4000)"),
        ("in many folders", "import os\nfor n in range(20):\n    os.mkdir(f'd{n}')\n    with open(f'd{n}/f', 'wb') as f: f.write(bytes(15 << 20))"),
        ("a file that is not named", "import os, time\nf = []\nfor n in range(20):\n    f.append(os.open('.', os.O_TMPFILE | os.O_RDWR)); os.write(f[-1], bytes(15 << 20))\n"
         "time.sleep(1.2); won()"),
        (
            "files in flight",
            "import os, socket, time\na, b = socket.socketpair()\nfor _ in range(20):\n    f = os.open('f', os.O_CREAT | os.O_RDWR)\n"
            "    for _ in range(15): os.write(f, bytes(1 << 20))\n"
            "    os.unlink('f'); socket.send_fds(a, [b'x'], [f]); os.close(f)\ntime.sleep(1.2); won()",
        ),
        ("too deep to remove", "import os\nfor _ in range(5000): os.mkdir('d'); os.chdir('d')"),
        ("files that are removed", "import os, time\nk = []\nfor n in range(20):\n    f = open('f', 'wb'); f.write(bytes(15 << 20)); f.flush(); os.unlink('f'); k.append(f)\n"
         "time.sleep(1.2); won()"),
        ("a file with holes", "import os; f = os.open('f', os.O_CREAT | os.O_RDWR); os.truncate(f, 1 << 40); won(os.fstat(f).st_size == 1 << 40)"),
    ],
    has_folder=True,
    memory=32 << 20,
)  # fmt: skip
_OF_PYTHON = python(
    "disk",
    Against.PYTHON,
    [
        (
            "descriptors",
            "import os\nn = 0\ntry:\n    while n < 900: os.dup(0); n += 1\nexcept OSError: pass\nwon(n > 64)",
        ),
        ("largest file in a folder", "f = open('/tmp/' + left, 'wb'); f.truncate(1 << 30); won()"),
    ],
)
_TIME = python(
    "time and output",
    Against.BOTH,
    [
        ("a loop", "while True: pass"),
        ("sleep", "import time; time.sleep(99)"),
        ("wait for a signal", "import signal; signal.pause()"),
        ("wait for input", "import os, time\nwhile True: os.read(0, 9) or time.sleep(.1)"),
        ("a slow pattern", "import re; re.match('(a+)+$', 'a' * 64 + 'b')"),
        ("a large number", "print(7 ** 10 ** 9 % 10)"),
        ("deaf to signals", "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
         "while True: pass"),
        ("blocks signals", "import signal; signal.pthread_sigmask(0, range(1, 64))\nwhile True: pass"),
        ("silent and alive", "import os; os.close(1); os.close(2)\nwhile True: pass"),
        ("after the end", "import atexit, time; time.sleep(9)"),
        ("in the last breath", "class A:\n    def __del__(self):\n        import time; time.sleep(99)\na = A(); del a"),
        ("catches everything", "import time\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass"),
        ("exits in vain", "import time\ntry: sys.exit(0)\nfinally: time.sleep(99)"),
        ("stops itself", "import os; os.kill(os.getpid(), 19)"),
        ("a sleeping thread", "import threading, time; threading.Thread(target=time.sleep, args=(99,)).start()"),
        ("a child that holds the output", "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(99)"),
        ("execute sleep", "import os; os.execv('/bin/sleep', [nonce, '9'])"),
        ("wait in the kernel", "import select; select.select([], [], [], 99)"),
        ("wait for a lock", "import _thread; l = _thread.allocate_lock(); l.acquire(); l.acquire()"),
        ("wait for a child", "import os, time\np = os.fork()\nif p == 0: time.sleep(99)\nos.waitpid(p, 0)"),
        ("vfork", "r = call(58)\nif r == 0:\n    while True: pass"),
    ],
    seconds=0.5,
)  # fmt: skip
_OUTPUT = python(
    "time and output",
    Against.BOTH,
    [
        ("floods", "import os\nfor _ in range(60000): os.write(1, b'x' * 1000)"),
        ("complaints", "import os\nfor _ in range(60000): os.write(2, b'x' * 1000)"),
        ("one long line", "sys.stdout.write('x' * (40 << 20))"),
        ("a long traceback", "raise ValueError('x' * (40 << 20))"),
        ("wide letters", "sys.stdout.write(chr(0x1f600) * (10 << 20))"),
        ("both at once", "import os\nfor _ in range(30000): os.write(1, b'x' * 1000); os.write(2, b'x' * 1000)"),
        ("a child floods", "import os\nif os.fork() == 0:\n    for _ in range(60000): os.write(1, b'x' * 1000)\n    os._exit(0)\nos.wait()"),
    ],
    seconds=6.0,
    memory=256 << 20,
)  # fmt: skip
_SHELL = (
    *shell("time and output", [
        ("sh: loop", "while :; do :; done"),
        ("sh: sleep", "sleep 99"),
        ("sh: deaf", "trap '' TERM INT HUP QUIT; while :; do sleep 9; done"),
        ("sh: holds the output", "sleep 9 & exit 0"),
        ("sh: stops itself", "kill -STOP $$"),
        ("sh: waits for input", "tail -f /dev/null"),
    ], seconds=0.5),
    *shell("time and output", [
        ("sh: floods", "head -c 40000000 /dev/zero | tr '\\0' x"),
        ("sh: complaints", "head -c 40000000 /dev/zero | tr '\\0' x >&2"),
    ], seconds=6.0),
    *shell("disk", [
        ("sh: several files", "for n in 1 2 3 4 5 6 7 8 9; do head -c 30000000 /dev/zero >f$n; done"),
        ("sh: a thousand folders", "perl -e 'for $n (1..34000) { mkdir \"d$n\" }'"),
        ("sh: room for a file", "for n in 1 2 3 4 5 6 7 8 9; do fallocate -l 30000000 f$n; done"),
    ], has_folder=True, memory=32 << 20),
    *shell("number of processes", [
        ("sh: children", "perl -e 'for (1..700) { $p = fork; defined $p or exit 1; $p or (sleep 2, exit) } sleep 1; print \"WON $ARGV[0]\\n\"' $nonce"),
    ], memory=512 << 20),
    *shell("memory", [
        ("sh: memory as files", "for f in /dev/shm /tmp; do for n in 1 2 3 4; do head -c 50000000 /dev/zero >$f/$left$n || exit; done; done; sleep 1.2; echo WON $nonce; rm -f /dev/shm/$left? /tmp/$left?"),
        ("sh: several readers", "for n in 1 2 3 4 5 6 7 8; do perl -e '$x = \"x\" x 50000000; sleep 2; print \"$ARGV[0]\\n\"' y & done | grep -c y | grep -qx 8 && echo WON $nonce"),
    ], memory=64 << 20),
)  # fmt: skip
ATTACKS: tuple[Attack, ...] = (*_MEMORY, *_PROCESSES, *_DISK, *_OF_PYTHON, *_TIME, *_OUTPUT, *_SHELL)
