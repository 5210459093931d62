"""Programs that try to leave the box, each a few lines; whoever gets what it must not have prints ESCAPED.

Every program finds `known`, what it may know of the world around: a secret file, a port that listens, the process that
watches it. Without walls the harmless ones do escape, which the tests show as well: an attack that cannot succeed
anywhere would prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = """
import json, sys
known = json.loads(sys.stdin.readline())
secret, port, parent = known["secret"], known["port"], known["parent"]
def won(is_won=True):
    if is_won:
        print("ESCAPED", flush=True)
"""
_CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    return libc.syscall(number, *arguments)
"""


@dataclass(frozen=True)
class Attack:
    """A program, how it ends in the box, and whether it may be tried without walls."""

    name: str
    program: str
    endings: tuple[str, ...] = ("finished",)
    is_real: bool = False  # it escapes without walls, and does no harm there

    @property
    def text(self) -> str:
        return PRELUDE + (_CALL if "call(" in self.program else "") + self.program


def _files(name: str, program: str) -> Attack:
    return Attack(name, program, is_real=True)


READ = (
    _files("open a file", "won('s3cret' in open(secret).read())"),
    _files("open by descriptor", "import os; won(b's3cret' in os.read(os.open(secret, os.O_RDONLY), 99))"),
    _files("open by io", "import io; won(b's3cret' in io.FileIO(secret).read())"),
    _files("open by path", "import pathlib; won('s3cret' in pathlib.Path(secret).read_text())"),
    _files("open relative", "import os; os.chdir(os.path.dirname(secret)); won(open(os.path.basename(secret)).read())"),
    _files("open by folder", "import os; f = os.open('/', os.O_RDONLY); won(os.open(secret[1:], 0, dir_fd=f) >= 0)"),
    _files("open for its path", "import os; f = os.open(secret, os.O_PATH); won(open(f'/proc/self/fd/{f}').read())"),
    _files("its own environment", "won('PATH' in open('/proc/self/environ').read())"),
    _files("its own memory map", "won(open('/proc/self/maps').read())"),
    _files("its parent's environment", "won(open(f'/proc/{parent}/environ', 'rb').read())"),
    _files("its parent's memory", "won(open(f'/proc/{parent}/mem', 'rb').fileno() >= 0)"),
    _files("all processes", "import os; won(os.listdir('/proc'))"),
    _files("the root folder", "import os; won(os.listdir('/'))"),
    _files("the folder of temporary files", "import os; won([each.name for each in os.scandir('/tmp')])"),
    _files("the list of users", "won(open('/etc/passwd').read())"),
    _files("the settings of the kernel", "won(open('/proc/sys/kernel/hostname').read())"),
    _files("the newer open", "b = ctypes.create_string_buffer(24); won(call(437, -100, secret.encode(), b, 24) >= 0)"),
    _files("a copy through the kernel", "import os; f = os.open(secret, 0); won(os.sendfile(1, f, 0, 9) > 0)"),
)
CHANGE = (
    _files("a new file", "open(secret + '.new', 'w').write('x'); won()"),
    _files("append", "open(secret, 'a').write('x'); won()"),
    _files("truncate", "import os; os.truncate(secret, 1); won()"),
    _files("unlink", "import os; os.unlink(secret); won()"),
    _files("rename", "import os; os.rename(secret, secret + '.old'); won()"),
    _files("permissions", "import os; os.chmod(secret, 0o777); won()"),
    _files("owner", "import os; os.chown(secret, os.getuid(), os.getgid()); won()"),
    _files("a symbolic link", "import os; os.symlink(secret, secret + '.link'); won()"),
    _files("a hard link", "import os; os.link(secret, secret + '.hard'); won()"),
    _files("a folder", "import os; os.mkdir(secret + '.d'); won()"),
    _files("a pipe by name", "import os; os.mkfifo(secret + '.p'); won()"),
    _files("times", "import os; os.utime(secret, (1, 1)); won()"),
    _files("extended attributes", "import os; os.setxattr(secret, 'user.a', b'1'); won()"),
    _files("its own memory as a file", "open('/proc/self/mem', 'r+b'); won()"),
    _files("memory as a file", "import os; os.memfd_create('x'); won()"),
    Attack("another root", "import os; os.chroot('/tmp'); won()"),
    Attack("a device", "import os, stat; os.mknod(secret + '.n', stat.S_IFCHR | 0o600, os.makedev(1, 1)); won()"),
    Attack("a mount", "won(call(165, b'none', b'/tmp', b'tmpfs', 0, 0) == 0)"),
    Attack("a handle of a file", "b = ctypes.create_string_buffer(200); won(call(304, -100, b, 0) >= 0)"),
    _files("watch files", "won(call(294, 0) >= 0)"),
)
TALK = (
    _files("connect", "import socket; socket.create_connection(('127.0.0.1', port), 1); won()"),
    _files("a datagram", "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', port)); won()"),
    _files("a socket of the machine", "import socket; socket.socket(socket.AF_UNIX); won()"),
    _files("an abstract socket", "import socket; socket.socket(1, 1).bind(chr(0) + 'strop'); won()"),
    _files("a pair of sockets", "won(call(53, 1, 1, 0, (ctypes.c_int * 2)()) == 0)"),
    _files("listen", "import socket; socket.create_server(('127.0.0.1', 0)); won()"),
    _files("the kernel's own sockets", "won(call(41, 16, 3, 0) >= 0)"),
    Attack("a raw socket", "won(call(41, 2, 3, 1) >= 0)"),
)
START = (
    _files("fork", "import os\nif os.fork() == 0: os._exit(0)\nwon()"),
    _files("fork by number", "r = call(57)\nif r == 0: call(231, 0)\nwon(r > 0)"),
    _files("clone by number", "r = call(56, 17, 0, 0, 0, 0)\nif r == 0: call(231, 0)\nwon(r > 0)"),
    _files("execute", "import os; os.execv('/bin/echo', ['echo', 'ESCAPED'])"),
    _files("spawn", "import os; won(os.posix_spawn('/bin/true', ['true'], {}) > 0)"),
    _files("a shell", "import os; won(os.system('true') == 0)"),
    _files("a child by library", "import subprocess; won(subprocess.run(['true']).returncode == 0)"),
    _files("a process by library", "import multiprocessing as m; p = m.Process(target=print); p.start(); won(p.pid)"),
    _files("a thread", "import threading; threading.Thread(target=won).start()"),
    Attack("processes without end", "import os\nwhile True:\n    try: os.fork()\n    except OSError: break"),
    Attack("execute memory", "won(call(322, 3, b'', 0, 0, 0x1000) == 0)"),
)
OTHERS = (
    Attack("kill the watcher", "import os; os.kill(parent, 9); won()"),
    Attack("kill all", "import os; os.kill(-1, 9); won()"),
    _files("ask for a process", "import os; os.kill(parent, 0); won()"),
    _files("hold a process", "won(call(434, parent, 0) >= 0)"),
    _files("signal a thread", "won(call(234, parent, parent, 0) == 0)"),
    Attack("trace the watcher", "won(call(101, 16, parent, 0, 0) == 0)"),
    Attack("be traced", "won(call(101, 0, 0, 0, 0) == 0)"),
    Attack("read the watcher", "won(call(310, parent, 0, 0, 0, 0, 0) == 0)"),
    Attack("signals through a file", "import fcntl; fcntl.fcntl(1, 8, parent); won()"),
    _files("be nicer to itself", "import os; won(call(140, 0, 0) >= 0)"),
    _files("choose its core", "import os; os.sched_setaffinity(0, {0}); won()"),
    _files("a new session", "won(call(109, 0, 0) == 0 or call(112) > 0)"),
    Attack("another user", "import os; os.setresuid(1, 1, 1); won()"),
    Attack("namespaces", "won(call(272, 0x10000000) == 0)"),
    Attack("join a namespace", "won(call(308, 1, 0) == 0)"),
    Attack("keys", "won(call(250, 0, -4, 1) >= 0)"),
    Attack("rings", "b = ctypes.create_string_buffer(200); won(call(425, 4, b) >= 0)"),
    Attack("programs of the kernel", "b = ctypes.create_string_buffer(200); won(call(321, 0, b, 64) >= 0)"),
    Attack("counters of the kernel", "b = ctypes.create_string_buffer(200); won(call(298, b, 0, -1, -1, 0) >= 0)"),
    Attack("faults of its own", "won(call(323, 1) >= 0)"),
    _files("shared memory", "won(call(29, 0, 4096, 0o1600) >= 0)"),
    _files("message queues", "won(call(68, 0, 0o1600) >= 0)"),
    _files("semaphores", "won(call(64, 0, 1, 0o1600) >= 0)"),
    _files("its name", "import os; won(os.uname().nodename)"),
    _files("another personality", "won(call(135, 0x0040000) >= 0)"),
    Attack("the clock", "won(call(164, 0, 0) == 0)"),
    Attack("the host's name", "won(call(170, b'x', 1) == 0)"),
    Attack("type for the user", "import fcntl; fcntl.ioctl(0, 0x5412, b'x'); won()"),
    Attack("calls of another width", "won(call(0x40000000 + 39) > 0)", ("denied",)),
    Attack(
        "calls of 32 bits",
        "libc.mmap.restype = ctypes.c_void_p; a = libc.mmap(None, 4096, 7, 0x22, -1, 0); call(39)\n"
        "ctypes.memmove(a, bytes.fromhex('b814000000cd80c3'), 8); won(ctypes.CFUNCTYPE(ctypes.c_int)(a)() > 0)",
        ("denied",),
    ),
    _files("limits", "import resource as r; r.setrlimit(r.RLIMIT_CPU, (50, 60)); won()"),
    _files("a looser filter", "won(libc.prctl(38, 1, 0, 0, 0) == 0) or call(39)"),
)
WASTE = (
    Attack("memory at once", "x = bytearray(1 << 40); won()", ("memory",)),
    Attack("memory by and by", "x = []\nwhile True: x.append(bytearray(1 << 20))", ("memory",)),
    Attack("memory by text", "x = 'a' * (1 << 33); won()", ("memory",)),
    Attack("a loop", "while True: pass", ("timeout",)),
    Attack("sleep", "import time; time.sleep(99); won()", ("timeout",)),
    Attack("a wait for more", "sys.stdin = None\nimport signal; signal.pause(); won()", ("timeout",)),
    Attack("a slow pattern", "import re; re.match('(a+)+$', 'a' * 64 + 'b'); won()", ("timeout",)),
    Attack("a large number", "print(len(str(7 ** 10 ** 9))); won()", ("timeout", "memory", "finished")),
    Attack("floods", "while True: print('x' * 1000)", ("output",)),
    Attack("complaints", "while True: sys.stderr.write('x' * 1000)", ("output",)),
    Attack("depth", "sys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()", ("killed", "memory", "timeout")),
    Attack("a crash", "import ctypes; ctypes.string_at(0)", ("killed",)),
    Attack("an abort", "import os; os.abort()", ("killed",)),
    Attack("brackets", "eval('(' * 100000 + ')' * 100000)"),
    Attack("descriptors", "import os\nwhile True:\n    try: os.dup(0)\n    except OSError: break\nwon(os.dup(0) > 64)"),
    Attack("signals to itself", "import signal; signal.setitimer(0, 1e-4, 1e-4)\nwhile True: pass", ("killed",)),
    Attack(
        "deaf to signals",
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\n"
        "while True: pass",
        ("timeout",),
    ),
    Attack("silent and alive", "import os; os.close(1); os.close(2)\nwhile True: pass", ("timeout",)),
    Attack("after the end", "import atexit, time; atexit.register(time.sleep, 99)"),
    Attack("in the last breath", "class A:\n    def __del__(self): __import__('time').sleep(99)\na = A()"),
    Attack("bytes that are no text", "import os; os.write(1, bytes(range(256)) * 10)"),
    Attack("a way out that looks well", "import os; os._exit(0)"),
)
FORGE = (
    Attack(
        "other descriptors",
        "import os\nfor n in range(3, 256):\n    try: os.write(n, b'x' * 64); won()\n    except OSError: pass",
    ),
    Attack(
        "read other descriptors",
        "import os\nfor n in range(3, 256):\n    try: os.fstat(n); won()\n    except OSError: pass",
    ),
    Attack(
        "change what is shared",
        "import json, builtins, os; json.loads = json.dumps = lambda *a, **k: {}; builtins.print = None\n"
        "os._exit = lambda n: None",
    ),
    Attack(
        "frames of others",
        "f = sys._getframe()\nwhile f: won('other' in str(f.f_locals.get('program', b''))[:40]); f = f.f_back",
    ),
)
ATTACKS = (*READ, *CHANGE, *TALK, *START, *OTHERS, *WASTE, *FORGE)
