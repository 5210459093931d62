"""Attacks that change what lies outside, or leave a file there."""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, python, shell

_CHANGE = python(
    "change files",
    Against.BOTH,
    [
        ("new file", "open(folder + '/new', 'w').write('x')"),
        ("append", "open(secret, 'a').write('x')"),
        ("overwrite", "open(secret, 'r+').write('x')"),
        ("write by number", "import os; f = call(2, secret.encode(), 1, 0); call(1, f, b'x', 1)"),
        ("create by number", "call(85, (folder + '/new').encode(), 0o600)"),
        ("truncate", "import os; os.truncate(secret, 1)"),
        ("truncate as it opens", "open(secret, 'w')"),
        ("truncate by number", "call(76, secret.encode(), 1)"),
        ("unlink", "import os; os.unlink(secret)"),
        ("unlink by number", "call(263, -100, secret.encode(), 0)"),
        ("rename", "import os; os.rename(secret, secret + '.old')"),
        ("exchange", "call(316, -100, secret.encode(), -100, (folder + '/link').encode(), 2)"),
        ("permissions", "import os; os.chmod(secret, 0o777)"),
        ("permissions by number", "call(268, -100, secret.encode(), 0o777)"),
        ("owner", "import os; os.chown(secret, os.getuid(), os.getgid())"),
        ("symbolic link", "import os; os.symlink(secret, secret + '.link')"),
        ("hard link", "import os; os.link(secret, secret + '.hard')"),
        ("new folder", "import os; os.mkdir(folder + '/d')"),
        ("remove a folder", "import os; os.rmdir(folder + '/empty')"),
        ("pipe by name", "import os; os.mkfifo(folder + '/p')"),
        ("device", "import os; os.mknod(folder + '/n', 0o20600, os.makedev(1, 3))"),
        ("socket by name", "import os; os.mknod(folder + '/s', 0o140600)"),
        ("socket by binding", "s = call(41, 1, 1, 0); n = (folder + '/s').encode(); call(49, s, pack('H100s', 1, n), 102)"),
        ("times", "import os; os.utime(secret, (1, 1))"),
        ("times by number", "call(280, -100, secret.encode(), None, 0)"),
        ("set an attribute", "import os; os.setxattr(secret, 'user.a', b'1')"),
        ("remove an attribute", "import os; os.removexattr(secret, 'user.word')"),
        ("room for a file", "import os; os.posix_fallocate(os.open(secret, os.O_RDWR), 0, 9999)"),
        ("file without a name", "import os; f = os.open(folder, os.O_TMPFILE | os.O_RDWR)\n"
         "os.link(f'/proc/self/fd/{f}', folder + '/t', follow_symlinks=True)"),
        ("map and write", "import os; f = os.open(secret, os.O_RDWR); libc.mmap.restype = ctypes.c_void_p\n"
         "ctypes.memmove(libc.mmap(None, 4096, 3, 1, f, 0), b'x', 1)"),
        ("flags of a file", "import os, fcntl; fcntl.ioctl(os.open(secret, 0), 0x40086602, (64).to_bytes(8, 'little'))"),
        ("through the root of itself", "open('/proc/self/root' + secret, 'a').write('x')"),
        ("through the root of another", "open(f'/proc/{decoy}/root' + secret, 'a').write('x')"),
        ("through the folder of another", "open(f'/proc/{decoy}/cwd/new', 'w').write('x')"),
        ("through a descriptor of another", "open(f'/proc/{decoy}/fd/{descriptor}', 'a').write('x')"),
        ("copy onto it", "import os; f = os.open(secret, os.O_WRONLY); os.sendfile(f, os.open(sys.executable, 0), 0, 9)"),
        ("temporary file beside it", "import tempfile; tempfile.mkstemp(dir=folder)"),
        ("left among temporary files", "open('/tmp/' + left, 'w').write('x')"),
        ("left among lasting temporary files", "open('/var/tmp/' + left, 'w').write('x')"),
        ("left in memory", "open('/dev/shm/' + left, 'w').write('x')"),
        ("left in memory by library", "libc.shm_open(('/' + left).encode(), 0o102, 0o600)"),
        ("left at home", "open(home + '/' + left, 'w').write('x')"),
        ("change a database", "import sqlite3; c = sqlite3.connect(folder + '/base'); c.execute('delete from t'); c.commit()"),
        ("lock a file", "import os, fcntl; fcntl.flock(os.open(secret, 0), fcntl.LOCK_EX | fcntl.LOCK_NB); won()"),
        ("lease of a file", "import os, fcntl; fcntl.fcntl(os.open(secret, 0), 1024, 1); won()"),
        ("notes of a folder", "import os, fcntl; fcntl.fcntl(os.open(folder, 0), 1026, 2); won()"),
    ],
)  # fmt: skip
_OWN = python(
    "change files",
    Against.BOTH,
    [
        ("write through a link", "import os; os.symlink(secret, 'l'); open('l', 'a').write('x')"),
        ("move its file out", "import os; open('f', 'w'); os.rename('f', folder + '/moved')"),
        ("link its file out", "import os; open('f', 'w'); os.link('f', folder + '/linked')"),
        ("write beside its folder", "open('../new', 'w')"),
        ("program of another user in its folder", "import os; open('f', 'w'); os.chmod('f', 0o4755)"),
        ("device in its folder", "import os; os.mknod('n', 0o20666, os.makedev(1, 3))"),
        ("capabilities of a file in its folder", "import os; open('f', 'w')\n"
         "os.setxattr('f', 'security.capability', bytes.fromhex('0100000202000000000000000000000000000000'))"),
        ("give its file away", "import os; open('f', 'w'); os.chown('f', 12345, 12345)"),
    ],
    has_folder=True,
)  # fmt: skip
_OF_PYTHON = python(
    "change files",
    Against.PYTHON,
    [
        ("its memory as a file", "open('/proc/self/mem', 'r+b'); won()"),
        ("memory as a file", "import os; os.memfd_create('x'); won()"),
        ("secret memory", "won(call(447, 0) >= 0)"),
        ("another root", "import os; os.chroot('/tmp'); won()"),
        ("watch files", "won(call(294, 0) >= 0)"),
        ("watch all files", "won(call(300, 0x200, 0) >= 0)"),
        ("its mask of permissions", "import os; os.umask(0); won()"),
        ("the word for its death", "open('/proc/self/oom_score_adj', 'w').write('1000'); won()"),
        ("its name as a file", "open('/proc/self/comm', 'w').write('x'); won()"),
    ],
)
_SHELL = shell(
    "change files",
    [
        ("sh: append", "echo x >>$secret"),
        ("sh: new file", "touch $folder/new"),
        ("sh: remove", "rm -rf $folder/names"),
        ("sh: move", "mv $secret $folder/moved"),
        ("sh: permissions", "chmod 777 $secret"),
        ("sh: copy out", "cp /bin/true $folder/true"),
        ("sh: link out", "ln -s / $folder/root"),
        ("sh: beside its folder", "echo x >../new"),
        ("sh: left among temporary files", "touch /tmp/$left"),
        ("sh: left in memory", "touch /dev/shm/$left"),
        ("sh: unpack upwards", "mkdir a && touch a/b && tar -cPf t.tar --transform=s,^a/,../, a/b && tar -xPf t.tar"),
    ],
    has_folder=True,
)
ATTACKS: tuple[Attack, ...] = (*_CHANGE, *_OWN, *_OF_PYTHON, *_SHELL)
