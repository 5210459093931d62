"""The isolation of both sandboxes, one by one, as this user and as an ordinary one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strop.sandbox import bubblewrap
from strop.sandbox.execution import Ending
from strop.sandbox.kernel_isolation.confine import KernelIsolation, best_isolation
from tests.sandbox.users import NOBODY, boxed, everybodys_python, python, shelled, users

needs_bubble = pytest.mark.skipif(bool(bubblewrap.problem()), reason=f"isolation: {bubblewrap.problem()}")
needs_files = pytest.mark.skipif(
    best_isolation() is not KernelIsolation.FILES, reason="isolation: needs Landlock and mounts of one's own"
)
each_user = pytest.mark.parametrize("user", users())
_CALL = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\ncall = libc.syscall\n"


@needs_bubble
@each_user
def test_the_kernels_settings_cannot_be_opened_for_writing(user: str) -> None:
    """Root of a sandbox that is root of the machine can: the kernel asks who it is, not what it may."""
    names = (
        "sys/kernel/core_pattern",
        "sys/kernel/panic",
        "sys/vm/drop_caches",
        "sysrq-trigger",
        "sys/fs/lease-break-time",
    )
    text = "; ".join(f"(: >>/proc/{name}) && echo {name}" for name in names)
    found = shelled(user, "sh", "-c", text)
    assert found.ending is Ending.FINISHED and found.stdout == ""
    if os.getuid() == 0:
        assert os.access("/proc/sys/kernel/core_pattern", os.W_OK), "who asks could do it"


@needs_bubble
@each_user
def test_what_proc_tells_of_the_machine_is_masked_and_sys_is_not_there(user: str) -> None:
    text = (
        "cat /proc/keys /proc/kcore /proc/interrupts /proc/timer_list; ls /proc/acpi /sys; cat /proc/sys/kernel/ostype"
    )
    assert shelled(user, "sh", "-c", text).stdout.replace("/proc/acpi:\n", "").strip() == "Linux"


@needs_bubble
@each_user
def test_no_process_inside_is_root_out_here_and_no_two_runs_are_one_user(user: str) -> None:
    with ThreadPoolExecutor(2) as threads:
        marks = [f"3{os.getpid()}.{place}" for place in range(2)]
        runs = [threads.submit(shelled, user, "timeout", "5", "sleep", mark) for mark in marks]
        found = [_who(mark) for mark in marks]
        assert all(run.result().code == 124 for run in runs)
    assert all(len(each) == 1 and 0 not in each for each in found), found
    assert found[0] == found[1] == {NOBODY} if user == "nobody" else os.getuid() or found[0] != found[1]


def _who(mark: str) -> set[int]:
    """The users of processes with this on their command line, out here; the one who asks is not among them."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for place in Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
                if words[:1] == [b"sleep"] and mark.encode() in words:
                    line = (place / "status").read_text().split("Uid:")[1].splitlines()[0]
                    return {int(word) for word in line.split()}
            except OSError:
                continue
        time.sleep(0.01)
    return set()


_SEEN = """
found = ctypes.create_string_buffer(99)
key = call(250, 10, -3, b"user", b"strop-key", 0)
print("seen" if key > 0 and call(250, 11, key, found, 99, 0) > 0 else "not seen")
print("made" if call(248, b"user", b"strop-other", b"x", 1, -3) > 0 else "not made")
"""


@needs_bubble
@each_user
def test_keys_of_the_session_are_not_seen_inside_and_none_is_left(user: str) -> None:
    holder = [sys.executable if user == "own" else everybodys_python(), "-c", _CALL + _HOLDS]
    without = [*holder, holder[0], "-c", _CALL + _SEEN]
    assert subprocess.run(without, capture_output=True, text=True).stdout == "seen\nmade\n"
    assert python(user, _CALL + _SEEN, first=holder).stdout == "not seen\nnot made\n"
    assert "strop-other" not in Path("/proc/keys").read_text()


_HOLDS = """
import sys
call(250, 1, None)
assert call(248, b"user", b"strop-key", b"s3cret", 6, -3) > 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
# what a program of any kind may not ask for; each prints its name where it is given
_CALLS = """
b = lambda n=256: ctypes.create_string_buffer(n)
def told(name, result):
    if result >= 0: print(name)
told("rings", call(425, 4, b()))
told("faults", call(323, 1))
told("memory as a file", call(319, b"x", 0))
told("secret memory", call(447, 0))
for name, family, kind, protocol in (
    ("vsock", 40, 1, 0), ("netlink", 16, 3, 0), ("packet", 17, 3, 0), ("alg", 38, 5, 0), ("bluetooth", 31, 3, 0),
    ("raw", 2, 3, 1), ("mptcp", 2, 1, 262), ("sctp", 2, 1, 132),
):
    told(name, call(41, family, kind, protocol))
told("keys", call(250, 0, -4, 1))
told("ptrace", call(101, 0, 0, 0, 0))
told("kcmp", call(312, os.getpid(), os.getpid(), 0, 0, 0))
told("read a process", call(310, os.getpid(), 0, 0, 0, 0, 0))
told("counters", call(298, b(), 0, -1, -1, 0))
told("bpf", call(321, 0, b(), 64))
told("a user namespace", call(272, 0x10000000))
told("files watched", call(300, 0, 0))
told("a handle", call(303, -100, b"/usr", b(), b(), 0))
told("another personality", call(135, 0x0400000))
told("shared memory", call(29, 0, 4096, 0o1600))
told("semaphores", call(64, 0, 1, 0o1600))
told("messages", call(68, 0, 0o1600))
told("queues", call(240, b"x", 0o102, 0o600, 0))
told("kernel log", call(103, 10, 0, 0))
told("mounts", call(428, -100, b"/", 1))
pid = call(56, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
told("a cloned namespace", pid)
pid = call(435, (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)
if pid == 0: os._exit(0)
told("a namespace by the newer call", pid)
"""


@needs_bubble
@each_user
def test_a_program_of_any_kind_is_refused_what_reaches_out(user: str) -> None:
    """Without isolation most of it is given, so it is the filter that refuses."""
    given = subprocess.run([sys.executable, "-c", _CALL + _CALLS], capture_output=True, text=True).stdout.splitlines()
    assert len(given) >= 12, given
    found = python(user, _CALL + _CALLS)
    assert (found.ending, found.stdout, found.stderr) == (Ending.FINISHED, "", "")


_OLD_WIDTH = """
libc.mmap.restype = ctypes.c_void_p
place = libc.mmap(None, 4096, 7, 0x22, -1, 0)
ctypes.memmove(place, bytes.fromhex("b814000000cd80c3"), 8)
print("given", ctypes.CFUNCTYPE(ctypes.c_int)(place)() > 0)
"""


@needs_bubble
@pytest.mark.parametrize("text", [_OLD_WIDTH, "print('given', call(0x40000000 + 39) > 0)"])
def test_calls_of_another_width_end_a_program(text: str) -> None:
    assert python("own", _CALL + text).stdout == ""
    assert python("own", _CALL + "print(call(39) > 0)").stdout == "True\n"


@needs_bubble
@each_user
def test_what_programs_need_is_still_given(user: str, tmp_path: Path) -> None:
    """Compilers, shells, sockets of their own, threads, children."""
    text = """
import os, socket, subprocess, threading, sys
here, there = socket.socketpair(); here.sendall(b"a"); assert there.recv(1) == b"a"
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname()).close()
threads = [threading.Thread(target=print, args=("thread",)) for _ in range(3)]
for each in threads: each.start()
for each in threads: each.join()
open("main.c", "w").write('#include <stdio.h>\\nint main(){puts("compiled");}')
if subprocess.run(["sh", "-c", "command -v gcc"], stdout=subprocess.DEVNULL).returncode == 0:
    subprocess.run(["gcc", "main.c", "-o", "main"], check=True)
    subprocess.run(["./main"], check=True, stdout=subprocess.DEVNULL)
os.mkfifo("pipe"); os.chmod("main.c", 0o755); os.symlink("main.c", "link"); os.link("main.c", "hard")
print(os.getuid(), subprocess.run(["git", "--version"], capture_output=True).returncode in (0, 127))
"""
    found = python(user, text)
    assert found.is_well and found.stdout == "thread\n" * 3 + "1000 True\n", found


@needs_bubble
@each_user
def test_no_file_lends_its_owners_rights(user: str) -> None:
    text = """
import os
for mode in (0o4755, 0o2755):
    for make in (lambda: os.chmod("a", mode), lambda: os.close(os.open(f"b{mode}", os.O_CREAT | os.O_WRONLY, mode))):
        open("a", "w").close()
        try: make(); print("made")
        except PermissionError: pass
"""
    assert python(user, text).stdout == ""


_LOOKS = """
import os, sys
def told(name, look, *given):
    try: look(*given); print(name)
    except OSError: pass
for path in sys.stdin.read().split():
    told("stat " + path, os.stat, path)
    told("access " + path, lambda: None if os.access(path, os.F_OK) else os.stat("/nowhere"))
    told("link " + path, os.readlink, path)
    told("list " + path, os.listdir, path)
"""


@needs_files
@each_user
def test_a_python_program_cannot_ask_about_files_outside(user: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    asked = [
        "/etc/passwd",
        "/etc/hostname",
        "/etc",
        "/tmp",
        "/proc/self/exe",
        "/sys/kernel",
        "/usr/bin",
        str(tmp_path),
    ]
    asked += [str(tmp_path / "link"), "/usr/lib/python3/dist-packages", str(Path(__file__)), "/bin/sh", "/dev/null"]
    found = boxed(user, _LOOKS, stdin=" ".join(asked))
    assert (found.ending, found.stdout, found.stderr) == (Ending.FINISHED, "", "")
    control = subprocess.run([sys.executable, "-c", _LOOKS], input=" ".join(asked), capture_output=True, text=True)
    assert len(control.stdout.splitlines()) >= 20


@needs_files
@each_user
def test_what_is_installed_beside_the_interpreter_is_not_there(user: str) -> None:
    text = """
import importlib.util, os, sys
for root in sys.path:
    for name in ("site-packages", "dist-packages"):
        try: print(os.listdir(os.path.join(root, name)) or "")
        except OSError: pass
print(*(name for name in ("strop", "pip", "torch", "pytest") if importlib.util.find_spec(name)))
"""
    assert boxed(user, text).stdout.split() == []
    installed = Path(sysconfig.get_path("stdlib"), "site-packages")
    assert user != "own" or not installed.exists() or any(installed.iterdir())


@needs_files
@each_user
def test_other_processes_limits_and_cores_cannot_be_asked_for(user: str) -> None:
    text = "import os, resource\nfor n in (os.getppid(), 1):\n" + "".join(
        f"    try: {ask}; print('given')\n    except OSError: pass\n"
        for ask in ("resource.prlimit(n, resource.RLIMIT_CPU)", "os.sched_getaffinity(n)")
    )
    own = "print(len(os.sched_getaffinity(0)) > 0, resource.getrlimit(resource.RLIMIT_CPU)[0] > 0)"
    for isolation in KernelIsolation:
        assert (
            boxed(user, text.replace("resource\n", "resource\n" + own + "\n", 1), isolation=isolation.value).stdout
            == "True True\n"
        )


# a window, a browser, a game of words; and what ends the process
_NOT_IMPORTED = {"antigravity", "this", "idlelib", "turtledemo", "turtle"}
_IMPORTS = """
import importlib, json, sys
failed = []
for name in json.loads(sys.stdin.read()):
    try: importlib.import_module(name)
    except BaseException as error: failed.append(name)
print(json.dumps(failed))
"""


@needs_files
@each_user
def test_the_standard_library_can_be_imported(user: str) -> None:
    names = json.dumps(sorted(sys.stdlib_module_names - _NOT_IMPORTED))
    python = sys.executable if user == "own" else everybodys_python()
    plain = subprocess.run([python, "-I", "-c", _IMPORTS], input=names, capture_output=True, text=True, check=True)
    found = boxed(user, _IMPORTS, stdin=names)
    assert found.is_well and set(json.loads(found.stdout)) <= set(json.loads(plain.stdout)), found


@needs_files
@each_user
def test_a_python_program_is_a_stranger_that_has_nothing(user: str) -> None:
    found = boxed(user, "import os; print(os.getuid(), os.getcwd())").stdout.split()
    assert found[1] == "/" and int(found[0]) not in (0, os.getuid() if user == "own" and os.getuid() == 0 else 0)


def test_the_list_of_calls_holds_what_the_kernel_knows_by_these_names() -> None:
    """By the C library's own constants, where they can be asked for: a wrong number would refuse something else."""
    from strop.sandbox.kernel_isolation.syscalls import COMPUTING, DENIED, MISSING, READING, WRITING

    wanted = {**COMPUTING, **READING, **WRITING, **DENIED, **MISSING}
    text = "#include <sys/syscall.h>\n" + "".join(f'"{name}" SYS_{name}\n' for name in wanted)
    done = subprocess.run(["cc", "-E", "-P", "-"], input=text, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("there is no C compiler")
    told = [line.replace('"', "").split() for line in done.stdout.splitlines() if line.startswith('"')]
    known = {name: int(number) for name, number in told if number.isdigit()}
    assert len(known) > 100 and {name: number for name, number in known.items() if wanted[name] != number} == {}


_CLOCKS = """
import time
for pid in range(1, 5000):
    try:
        time.clock_gettime(~pid << 3 | 2)
        print(pid)
    except OSError:
        pass
"""


@pytest.mark.skipif(best_isolation() is None, reason="isolation: needs seccomp filters on x86-64")
def test_clocks_do_not_say_which_processes_there_are() -> None:
    alone = subprocess.run([sys.executable, "-c", _CLOCKS], capture_output=True, text=True).stdout
    assert len(alone.split()) > 1, "who asks could do it"
    found = boxed("own", _CLOCKS + "print('end')")
    assert found.stdout == "end\n", found


_INIT = "print(call(302, 1, 4, None, b), call(302, 1, 4, b, None))"


@needs_bubble
def test_limits_of_the_first_process_inside_are_its_own() -> None:
    found = python("own", _CALL + "b = ctypes.create_string_buffer(16)\n" + _INIT)
    assert found.stdout == "-1 -1\n", found
