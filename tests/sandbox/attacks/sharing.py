"""Attacks through what processes share: keys of the kernel, memory, messages and semaphores by number or name."""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, python, shell

_KEYS = python(
    "keys",
    Against.BOTH,
    [
        ("read a key", "b = bits(99); call(250, 11, key, b, 99); tell(b.value)"),
        ("describe a key", "b = bits(200); call(250, 6, named_key, b, 200); tell(b.value)"),
        ("find a key", "k = call(250, 10, -3, b'user', key_name.encode(), 0); b = bits(99); call(250, 11, k, b, 99); tell(b.value)"),
        ("request a key", "k = call(249, b'user', key_name.encode(), None, 0); b = bits(99); call(250, 11, k, b, 99); tell(b.value)"),
        ("the ring of its session", "b = bits(400); n = call(250, 11, -3, b, 400)\nfor i in range(0, n, 4):\n"
         "    k = int.from_bytes(b.raw[i:i + 4], 'little'); d = bits(200); call(250, 11, k, d, 200); tell(d.value)"),
        ("number of a ring", "won(call(250, 0, -3, 0) > 0)"),
        ("ring of its user", "won(call(250, 0, -4, 1) > 0)"),
        ("ring of its user's session", "won(call(250, 0, -5, 1) > 0)"),
        ("a lasting ring", "won(call(250, 22, -1, -3) > 0)"),
        ("add a key", "call(248, b'user', ('left ' + nonce).encode(), b'x', 1, -3)"),
        ("add a key of its user", "won(call(248, b'user', b'strop-left', b'x', 1, -4) > 0)"),
        ("change a key", "call(250, 2, key, b'x', 1)"),
        ("revoke a key", "call(250, 3, key)"),
        ("unlink a key", "call(250, 9, key, -3)"),
        ("permissions of a key", "won(call(250, 5, key, 0x3f3f0000) == 0)"),
        ("end of a key", "won(call(250, 15, key, 3600) == 0)"),
        ("link a key", "k = call(250, 0, -2, 1); won(call(250, 8, key, k) == 0)"),
        ("another session", "won(call(250, 1, None) > 0)"),
        ("a ring of its process", "won(call(250, 0, -2, 1) > 0)"),
        ("list of keys", "tell(open('/proc/keys').read())"),
        ("users of keys", "won(open('/proc/key-users').read())"),
        ("label of a key", "won(call(250, 17, key, bits(99), 99) >= 0)"),
    ],
)  # fmt: skip
_MEMORY = python(
    "memory and messages",
    Against.BOTH,
    [
        ("shared memory by key", "libc.shmat.restype = ctypes.c_void_p; tell(ctypes.string_at(libc.shmat(libc.shmget(ipc, 0, 0), None, 0x1000), 64))"),
        ("shared memory by number", "libc.shmat.restype = ctypes.c_void_p; tell(ctypes.string_at(libc.shmat(memory_id, None, 0x1000), 64))"),
        ("change shared memory", "libc.shmat.restype = ctypes.c_void_p; ctypes.memmove(libc.shmat(memory_id, None, 0), b'x', 1)"),
        ("remove shared memory", "won(libc.shmctl(memory_id, 0, None) == 0)"),
        ("state of shared memory", "won(libc.shmctl(memory_id, 2, bits(200)) == 0)"),
        ("list of shared memory", "won(str(memory_id) in open('/proc/sysvipc/shm').read())"),
        ("shared memory that stays", "call(29, ipc + 1, 4096, 0o1600)"),
        ("a semaphore by key", "won(libc.semctl(libc.semget(ipc, 0, 0), 0, 12) == semaphore)"),
        ("a semaphore by number", "won(libc.semctl(semaphore_id, 0, 12) == semaphore)"),
        ("change a semaphore", "call(65, semaphore_id, pack('HhH', 0, 1, 0), 1)"),
        ("remove a semaphore", "won(libc.semctl(semaphore_id, 0, 0) == 0)"),
        ("list of semaphores", "won(str(semaphore_id) in open('/proc/sysvipc/sem').read())"),
        ("semaphores that stay", "call(64, ipc + 1, 1, 0o1600)"),
        ("a message by key", "b = bits(200); call(70, call(68, ipc, 0), b, 99, 0, 0o4000); tell(b.raw)"),
        ("a message by number", "b = bits(200); call(70, queue_id, b, 99, 0, 0o4000); tell(b.raw)"),
        ("send a message", "call(69, queue_id, pack('q8s', 1, b'x'), 8, 0o4000)"),
        ("remove a queue", "won(call(71, queue_id, 0, None) == 0)"),
        ("list of queues", "won(str(queue_id) in open('/proc/sysvipc/msg').read())"),
        ("a queue that stays", "call(68, ipc + 1, 0o1600)"),
        ("a queue by name", "f = call(240, door.encode(), 0o4000, 0, None); b = bits(9000); call(243, f, b, 9000, None, None); tell(b.raw[:99])"),
        ("send to a queue by name", "f = call(240, door.encode(), 0o4001, 0, None); won(call(242, f, b'x', 1, 0, None) == 0)"),
        ("remove a queue by name", "won(call(241, door.encode()) == 0)"),
        ("a queue by name that stays", "call(240, left.encode(), 0o102, 0o600, None)"),
        ("shared memory by name", "f = libc.shm_open(('/' + shared_name).encode(), 2, 0); call(1, f, b'x', 1)"),
        ("remove shared memory by name", "libc.shm_unlink(('/' + shared_name).encode())"),
    ],
)  # fmt: skip
_OF_PYTHON = python(
    "memory and messages",
    Against.PYTHON,
    [
        ("private shared memory", "won(call(29, 0, 4096, 0o1600) >= 0)"),
        ("private message queues", "won(call(68, 0, 0o1600) >= 0)"),
        ("private semaphores", "won(call(64, 0, 1, 0o1600) >= 0)"),
        (
            "semaphores by library",
            "import multiprocessing.synchronize as s, multiprocessing as m; s.Semaphore(1, ctx=m); won()",
        ),
        (
            "shared memory by library",
            "import multiprocessing.shared_memory as m; won(m.SharedMemory(create=True, size=9).buf)",
        ),
    ],
)
_SHELL = shell(
    "memory and messages",
    [
        ("sh: list shared memory", "ipcs -m | grep -qw $memory_id && echo WON $nonce"),
        ("sh: remove shared memory", "ipcrm -m $memory_id && echo WON $nonce"),
        ("sh: remove a queue", "ipcrm -q $queue_id && echo WON $nonce"),
        ("sh: make shared memory", "ipcmk -M 4096 && perl -e 'shmget($ARGV[0], 4096, 01600)' $ipc_left"),
        ("sh: shared memory as a file", "cat /dev/shm/$shared_name"),
        ("sh: remove shared memory as a file", "rm /dev/shm/$shared_name"),
        ("sh: keys", "grep -c . /proc/keys | grep -qv '^0$' && grep $key_name /proc/keys"),
        ("sh: perl: read shared memory", "perl -e 'shmread($ARGV[0], $b, 0, 64); print $b' $memory_id"),
        ("sh: perl: read a message", "perl -e 'msgrcv($ARGV[0], $b, 99, 0, 04000); print $b' $queue_id"),
        ("sh: perl: read a key", "perl -e '$b = \"\\0\" x 99; syscall(250, 11, $ARGV[0] + 0, $b, 99); print $b' $key"),
    ],
)  # fmt: skip
ATTACKS: tuple[Attack, ...] = (*_KEYS, *_MEMORY, *_OF_PYTHON, *_SHELL)
