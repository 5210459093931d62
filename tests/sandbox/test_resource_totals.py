"""What all processes of a sandbox may take together: one that passes a total is ended at once, and told by which."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from strop.sandbox import bubblewrap
from strop.sandbox.execution import Ending
from strop.sandbox.kernel_isolation import cgroup
from strop.sandbox.kernel_isolation.confine import KernelIsolation, best_isolation
from strop.sandbox.writable_folder import HiddenError, WritableFolder
from tests.sandbox.users import NOBODY, boxed, python, shelled, users

needs_bubble = pytest.mark.skipif(bool(bubblewrap.problem()), reason=f"isolation: {bubblewrap.problem()}")
needs_files = pytest.mark.skipif(
    best_isolation() is not KernelIsolation.FILES, reason="isolation: needs Landlock and mounts of one's own"
)
each_user = pytest.mark.parametrize("user", users())
_SMALL, _LARGE = 64 << 20, 20 << 20  # bytes that may be taken; of each piece that a program takes
_BEGIN = f"""
import mmap, os, socket, sys, threading, time
kept, size = [], {_LARGE}
def child(work):
    if os.fork() == 0: kept.append(work()); time.sleep(20); os._exit(0)
"""
_WAIT = "\ntime.sleep(20)\nprint('went on')"
_TOO_MUCH = {
    "children": "for _ in range(6): child(lambda: bytearray(size))",
    "shared without a file": """
for _ in range(6):
    def fill():
        found = mmap.mmap(-1, size); found.write(bytes(size)); return found
    child(fill)""",
    "files without a name": """
for _ in range(6):
    try:
        kept.append(open("/tmp/x", "wb", 0)); os.unlink("/tmp/x"); kept[-1].write(bytes(size))
    except OSError: break
child(lambda: bytearray(size)); child(lambda: bytearray(size))""",
    "folders and children": """
for place in ("/tmp/a", "/dev/shm/a"): open(place, "wb").write(bytes(size))
for _ in range(3): child(lambda: bytearray(size))""",
    "sockets": "for _ in range(3): child(lambda: [socket.socketpair() for _ in range(100)])",
    "sockets on their way": """
a, b = socket.socketpair()
for _ in range(200):
    c, d = socket.socketpair(); c.setblocking(False)
    try: c.send(bytes(1 << 18))
    except OSError: pass
    socket.send_fds(a, [b"x"], [d.fileno()]); c.close(); d.close()""",
    "pipes": "for _ in range(13): child(lambda: [os.pipe() for _ in range(100)])",
}


@needs_bubble
@each_user
@pytest.mark.parametrize("way", _TOO_MUCH)
def test_memory_of_all_processes_together_is_bounded(user: str, way: str) -> None:
    """Each piece alone is less than may be had."""
    found = python(user, _BEGIN + _TOO_MUCH[way] + _WAIT, memory=_SMALL)
    assert (found.ending, found.stdout) == (Ending.MEMORY, ""), found
    assert found.seconds < 15


@needs_bubble
@each_user
def test_folders_that_are_memory_have_one_size_together(user: str) -> None:
    text = "head -c 20M /dev/zero >/tmp/a && echo 1; head -c 20M /dev/zero >/dev/shm/a && echo 2"
    assert shelled(user, "sh", "-c", text, memory=32 << 20).stdout == "1\n"


@needs_bubble
@each_user
def test_memory_that_is_shared_counts_once(user: str) -> None:
    text = "kept.append(bytearray(size))\nfor _ in range(8): child(int)\ntime.sleep(0.5)\nprint('went on')"
    found = python(user, _BEGIN + text, memory=_SMALL)
    assert (found.ending, found.stdout) == (Ending.FINISHED, "went on\n")


@needs_bubble
@each_user
@pytest.mark.parametrize(
    "text",
    [
        "for _ in range(400): child(int)",  # a number, so that it ends where there is no isolation
        "threading.stack_size(1 << 16)\nfor _ in range(300): threading.Thread(target=time.sleep, args=(20,)).start()",
    ],
)
def test_processes_and_threads_together_are_bounded(user: str, text: str) -> None:
    found = python(user, _BEGIN + text + _WAIT)
    assert (found.ending, found.stdout) == (Ending.PROCESSES, ""), found


@needs_bubble
@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes somebody else")
def test_a_user_with_many_processes_may_still_run_one() -> None:
    """How many others that user has is nothing to a sandbox."""
    sleepers = [subprocess.Popen(["sleep", "60"], user=NOBODY, group=NOBODY) for _ in range(300)]
    try:
        found = python("nobody", "print('ran')")
    finally:
        for each in sleepers:
            each.kill()
            each.wait()
    assert found.stdout == "ran\n", found


_FILLS = {
    "files": "for n in range(6): open(f'a{n}', 'wb').write(bytes(size))",
    "files without a name": """
for _ in range(6): kept.append(open("a", "wb", 0)); os.unlink("a"); kept[-1].write(bytes(size))""",
    "a folder that is not to be looked into": """
os.mkdir("d"); os.open("d", os.O_RDONLY); os.chmod("d", 0o300)
for n in range(6): open(f"d/{n}", "wb").write(bytes(size))""",
    "empty files": "for n in range(40000): os.close(os.open(str(n), os.O_CREAT))",
    "folders in folders": """
for _ in range(200): os.mkdir("d"); os.chdir("d")
for n in range(6): open(f"a{n}", "wb").write(bytes(size))""",
}


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """One that belongs to who asks."""
    if request.node.callspec.params.get("user") != "nobody":
        return tmp_path
    path = Path(subprocess.run(["mktemp", "-d", "-p", "/var/tmp"], capture_output=True, text=True).stdout.strip())
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", str(path)]))
    os.chown(path, NOBODY, NOBODY)
    return path


@needs_bubble
@each_user
@pytest.mark.parametrize("way", _FILLS)
def test_the_disk_that_a_folder_takes_is_bounded(user: str, way: str, folder: Path) -> None:
    (folder / "before").write_bytes(bytes(2 * _SMALL))  # which is not counted
    found = python(user, _BEGIN + _FILLS[way] + _WAIT, memory=_SMALL, folder=str(folder))
    assert (found.ending, found.stdout) == (Ending.DISK, ""), found
    subprocess.run(["chmod", "-R", "700", str(folder)], check=True)


@needs_files
@each_user
@pytest.mark.parametrize("way", ["files", "files without a name", "empty files"])
def test_so_is_that_of_a_python_program(user: str, way: str, folder: Path) -> None:
    begin = f"import os, time\nkept, size = [], {_LARGE}\n"
    found = boxed(user, begin + _FILLS[way] + _WAIT, memory=_SMALL, folder=str(folder))
    assert (found.ending, found.stdout) == (Ending.DISK, ""), found


@needs_files
@needs_bubble
@each_user
def test_a_folder_is_given_back_to_whom_it_belongs(user: str, folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "old").write_text("1")
    for path in (folder / "inner", folder / "inner" / "old"):
        os.chown(path, NOBODY, NOBODY) if os.getuid() == 0 else None
    text = "open('new', 'w').write('2'); open('inner/old', 'a').write('3'); print(open('inner/old').read())"
    for asked, said in ((python, "13\n"), (boxed, "133\n")):
        found = asked(user, text, folder=str(folder))
        assert found.stdout == said, found
    owner = folder.stat().st_uid
    assert owner == (NOBODY if user == "nobody" else os.getuid())
    assert (folder / "new").stat().st_uid == owner and (folder / "new").read_text() == "2"
    assert os.getuid() != 0 or (folder / "inner" / "old").stat().st_uid == NOBODY


def test_what_is_lent_follows_no_link_and_lends_nobodys_rights(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret").write_bytes(bytes(1 << 20))
    writable = WritableFolder(str(inside))
    (inside / "link").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret")
    (inside / "raised").touch()
    (inside / "raised").chmod(0o6755)
    assert 0 < writable.added(1 << 30) < 1 << 19
    if os.getuid() == 0:
        writable.give(NOBODY)
        assert (inside / "raised").stat().st_uid == NOBODY and outside.stat().st_uid == 0
        writable.take_back()
        assert {each.lstat().st_uid for each in (inside, *inside.iterdir(), *outside.iterdir())} == {0}
        assert not (inside / "raised").stat().st_mode & (stat.S_ISUID | stat.S_ISGID)


def test_folders_in_folders_without_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 120)).mkdir(parents=True)
    with pytest.raises(HiddenError, match="more than 100 folders"):
        WritableFolder(str(tmp_path))


@needs_bubble
def test_nothing_is_left_of_a_sandbox() -> None:
    """No thread, no mount, no handle, however it ended."""
    python("own", "print(1)")
    mounts, threads, handles = Path("/proc/self/mounts").read_text(), threading.active_count(), _handles()
    import asyncio

    from strop.sandbox.execution import Allowance

    for words in (["true"], ["no-such-program"], ["sleep", "9"]):
        asyncio.run(bubblewrap.Bubble().run(words, "", Allowance(seconds=1.0)))
    time.sleep(0.1)
    assert (Path("/proc/self/mounts").read_text(), threading.active_count(), _handles()) == (mounts, threads, handles)


def _handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_control_group_holds_all_that_a_process_starts_and_ends_it() -> None:
    """The kernel's own: with what limits there are here, which on machines of the older kind is none."""
    group = cgroup.made({"cgroup.max.depth": "1"})
    if group is None:
        pytest.skip("this user may make no control group of the second version")
    child = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"], preexec_fn=group.join)
    members = (group.place / "cgroup.procs").read_text().split()
    assert str(child.pid) in members and str(os.getpid()) not in members
    group.remove()
    assert child.wait(10) == -9 and not group.place.exists() and not group.is_full()
    assert cgroup.made({"no.such.limit": "1"}) is None
    assert not list(group.place.parent.glob("strop-*"))
