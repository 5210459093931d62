"""Attacks on the verdict: on the interpreter that runs programs one after another, and on how an end is reported.

Their control is a server without isolation, which runs every program in its own process and answers on the pipe that
programs print on; a witness, an honest program, is run after each attack and must say what it always says. A victim
runs before it, and holds a secret.
"""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, Control, python, shell

_FRAME = (
    "import struct, json, os\nt = json.dumps({'ending': 'finished', 'code': 0, 'seconds': 0.0, 'memory': 0, 'stdout': len(nonce), 'stderr': 0}).encode()\n"
    "frame = struct.pack('>I', len(t)) + t + nonce.encode()\n"
)
_STATE = python(
    "state of the interpreter",
    Against.PYTHON,
    [
        ("loads no more", "import json; json.loads = lambda *a, **k: {}"),
        ("says no more", "import json; json.dumps = lambda *a, **k: '{}'"),
        ("prints nothing", "import builtins; builtins.print = lambda *a, **k: None"),
        ("prints another answer", "import builtins; p = print; builtins.print = lambda *a, **k: p(nonce)"),
        ("another length", "import builtins; builtins.len = lambda x: 3"),
        ("another sort", "import builtins; builtins.sorted = lambda x, **k: [nonce]"),
        ("a name for all", "import builtins; builtins.planted = nonce"),
        ("a name of the main module", "planted = nonce"),
        ("a module for all", "import types; sys.modules['planted'] = types.ModuleType(nonce)"),
        ("a module less", "sys.modules.pop('random', None); sys.modules['random'] = None"),
        ("its environment", "import os; os.environ['PLANTED'] = nonce"),
        ("its folder", "import os; os.chdir('/usr')"),
        ("its mask", "import os; os.umask(0o111)"),
        ("its path", "sys.path.insert(0, '/' + nonce)"),
        ("its arguments", "sys.argv[:] = [nonce]"),
        ("depth", "sys.setrecursionlimit(333)"),
        ("digits", "sys.set_int_max_str_digits(2000)"),
        ("decimals", "import decimal; decimal.getcontext().prec = 3"),
        ("probability", "import random; random.seed(nonce); random.seed = lambda *a: None"),
        ("signals", "import signal; signal.signal(signal.SIGUSR2, signal.SIG_IGN)"),
        ("an alarm", "import signal; signal.setitimer(signal.ITIMER_REAL, .05)"),
        ("limits", "import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); r.setrlimit(r.RLIMIT_NOFILE, (40, 40))"),
        ("nicer", "import os; os.nice(3)"),
        ("cores", "import os; os.sched_setaffinity(0, {0})"),
        ("descriptors", "import os; os.dup2(0, 40)"),
        ("no garbage", "import gc; gc.disable(); gc.set_threshold(1)"),
        ("how it ends", "import atexit; atexit.register(print, nonce)"),
        ("a trace", "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: print(nonce) if a[1] == 'c_call' else None)"),
        ("a hook of errors", "sys.excepthook = lambda *a: print(nonce)"),
        ("a hook of imports", "sys.meta_path.insert(0, type('F', (), {'find_spec': lambda *a: print(nonce)})())"),
        ("a thread that stays", "import threading, time\ndef f():\n    while True: print(nonce); time.sleep(.001)\nthreading.Thread(target=f, daemon=True).start()"),
        ("a class of numbers", "import fractions; fractions.Fraction.__add__ = lambda a, b: nonce"),
        ("memory of a constant", "import ctypes; ctypes.memmove(id(7) + 24, (8).to_bytes(4, 'little'), 4)"),
        ("the end of all", "import os; os._exit = lambda n: None; sys.exit = lambda *a: None"),
        ("warnings", "import warnings; warnings.filters.insert(0, ('error', None, Warning, None, 0))"),
        ("a switch of threads", "sys.setswitchinterval(1e-6)"),
        ("where it writes", "import io; sys.stdout = sys.__stdout__ = io.StringIO(); sys.stderr = None"),
        ("what it compiles", "import builtins; c = compile; builtins.compile = lambda s, *a, **k: c('print(1)', *a, **k)"),
        ("what it executes", "import builtins; builtins.exec = lambda *a, **k: None"),
        ("codecs", "import codecs; codecs.lookup_error('replace'); codecs.register_error('replace', lambda e: (nonce, e.end))"),
    ],
    control=Control.NAIVE,
)  # fmt: skip
_SECRETS = python(
    "secrets of other programs",
    Against.PYTHON,
    [
        ("objects of others", "import gc\nfor o in gc.get_objects():\n    if isinstance(o, dict) and isinstance(o.get('held_out'), str): tell(o['held_out'])"),
        ("frames of others", "f = sys._getframe()\nwhile f:\n    tell({k: str(v)[:200] for k, v in f.f_locals.items() if k == 'held_out'}); tell(str(f.f_globals.get('held_out'))); f = f.f_back"),
        ("the main module", "import __main__; tell(str(getattr(__main__, 'held_out', '')))"),
        ("names of builtins", "import builtins; tell(str(getattr(builtins, 'held_out', '')))"),
        ("a module that was left", "tell(str(getattr(sys.modules.get('left_here'), 'held_out', '')))"),
        ("an error that was left", "tell(str(getattr(sys, 'last_value', '')))"),
        ("its globals", "tell(str(globals().get('held_out')))"),
        ("functions of others", "import gc, types\nfor o in gc.get_objects():\n    if isinstance(o, types.FunctionType) and o.__name__ == 'answer_key': tell(o())"),
        ("lines of others", "import linecache; tell(str(linecache.cache)[:9000])"),
        ("its heap", "import re\nfor l in open('/proc/self/maps'):\n    if '[heap]' in l or (' rw-p ' in l and l.rstrip().endswith(' 0')):\n"
         "        a, b = (int(x, 16) for x in l.split()[0].split('-')); f = open('/proc/self/mem', 'rb', 0); f.seek(a)\n"
         "        for m in re.findall(b'held-out ([0-9a-f]{16})', f.read(min(b - a, 1 << 26))): tell(m)"),
    ],
    control=Control.NAIVE,
)  # fmt: skip
_FORGE = python(
    "forged verdicts",
    Against.PYTHON,
    [
        ("an answer on its output", _FRAME + "os.write(1, frame)"),
        ("an answer on its complaints", _FRAME + "os.write(2, frame); os.write(1, frame)"),
        ("answers on all descriptors", _FRAME + "for n in range(1, 64):\n    try: os.write(n, frame)\n    except OSError: pass"),
        ("an answer, then an end", _FRAME + "os.write(1, frame * 2); os._exit(0)"),
        ("half an answer", _FRAME + "os.write(1, frame[:7])"),
        ("a head without end", "import os; os.write(1, b'\\xff' * 64)"),
        ("noise", "import os; os.write(1, bytes(range(256)) * 10)"),
        ("exit", "import os; os._exit(0)"),
        ("exit with an error", "import os; os._exit(3)"),
        ("abort", "import os; os.abort()"),
        ("kill itself", "import os; os.kill(os.getpid(), 9)"),
        ("terminate itself", "import os; os.kill(os.getpid(), 15)"),
        ("crash", "import ctypes; ctypes.string_at(0)"),
        ("crash by depth", "sys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()"),
        ("a call of another width", "import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39); import os; os.kill(os.getpid(), 31)"),
        ("signals to itself", "import signal; signal.signal(14, signal.SIG_DFL); signal.setitimer(0, 1e-3, 1e-3)\nwhile True: pass"),
        ("close all", "import os; os.closerange(0, 64)"),
        ("close its output", "import os; os.close(1)"),
        ("close its input", "import os; os.close(0)"),
        ("empty its input", "import os; os.set_blocking(0, False); os.read(0, 1 << 20)"),
        ("other ends", "import os; os.dup2(2, 1); os.dup2(2, 0)"),
        ("kill its group", "import os; os.getpgrp() == os.getpid() and os.killpg(0, 9)"),
        ("exit in a thread", "import threading, os; threading.Thread(target=os._exit, args=(0,)).start()"),
        ("replace itself", "import os; os.execv('/bin/cat', ['cat', '/dev/null'])"),
        ("replace itself with an answer", _FRAME + "os.execv('/bin/sh', ['sh', '-c', 'printf %s \"$0\"', frame.decode('latin-1').replace(chr(0), '')])"),
        ("a child that answers", _FRAME + "if os.fork() == 0:\n    os.write(1, frame); os._exit(0)\nos.wait()"),
        ("two interpreters", "import os; os.fork()"),
        ("never ends", "while True: pass"),
        ("a system exit with text", "raise SystemExit('x' * 10)"),
        ("an exit that cannot be shown", "class E(BaseException):\n    def __str__(self): raise E\nraise E"),
        ("letters that are none", "print(chr(0xd800)); print(chr(0) * 9)"),
        ("letters that are none, as bytes", "import os; os.write(1, bytes([0xed, 0xa0, 0x80, 0xff]))"),
        ("interrupted", "raise KeyboardInterrupt"),
        ("end of generators", "raise GeneratorExit"),
        ("no memory", "raise MemoryError"),
        ("no memory, by code", "import os; os._exit(77)"),
        ("an error that grows", "class E(Exception):\n    def __repr__(self): return 'x' * (1 << 28)\n    __str__ = __repr__\nraise E"),
        ("brackets", "eval('(' * 100000 + ')' * 100000)"),
        ("no text", "import os\nwhile os.read(0, 1): pass"),
    ],
    control=Control.NAIVE,
    seconds=1.0,
)  # fmt: skip
# whoever reports how it ended, and nobody else: if that one is gone, its parent is a stranger
_PARENT = "import os, time; p = os.getppid(); assert nonce in open(f'/proc/{p}/cmdline').read()\n"
_ITS_PARENT = "grep -q $nonce /proc/$PPID/cmdline || exit 1; "
_EXCUSED = (
    *python("excuses", Against.COMMANDS, [
        ("kill its parent", _PARENT + "os.kill(p, 9)"),
        ("stop its parent", _PARENT + "os.kill(p, 19); time.sleep(2)"),
        ("an end on all descriptors", _PARENT + "for n in range(3, 64):\n    try: os.write(n, b'{ \"exit-code\": 0 }\\n')\n    except OSError: pass\nos.kill(p, 9); sys.exit(1)"),
        ("close all descriptors", _PARENT + "os.closerange(3, 256); os.kill(p, 9)"),
        ("interrupt its parent", _PARENT + "for n in (1, 2, 3, 15, 6, 11): os.kill(p, n)"),
    ], control=Control.WRAPPED, seconds=1.0),
    *shell("excuses", [
        ("sh: kill its parent", _ITS_PARENT + "kill -9 $PPID; exit 1"),
        ("sh: terminate its parent", _ITS_PARENT + "kill -TERM $PPID; exit 1"),
        ("sh: an end on all descriptors", _ITS_PARENT + "for n in 3 4 5 6 7 8 9; do eval \"echo '{ \\\"exit-code\\\": 0 }' >&$n\"; done 2>/dev/null; kill -9 $PPID"),
    ], control=Control.WRAPPED, seconds=1.0),
)  # fmt: skip
ATTACKS: tuple[Attack, ...] = (*_STATE, *_SECRETS, *_FORGE, *_EXCUSED)
