"""Attacks that read what lies outside: files by every call that opens one, names, sizes, environments, sources."""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, python, shell

_BOTH = Against.BOTH
_OPEN = python(
    "read files",
    _BOTH,
    [
        ("open", "tell(open(secret).read())"),
        ("open by descriptor", "import os; tell(os.read(os.open(secret, os.O_RDONLY), 99))"),
        ("open by io", "import io; tell(io.FileIO(secret).read())"),
        ("open by path", "import pathlib; tell(pathlib.Path(secret).read_text())"),
        ("open relative", "import os; os.chdir(folder); tell(open('secret').read())"),
        ("open by folder", "import os; f = os.open('/', 0); tell(os.read(os.open(secret[1:], 0, dir_fd=f), 99))"),
        ("open the folder by descriptor", "import os; f = os.open(folder, os.O_RDONLY); tell(os.listdir(os.open('names', 0, dir_fd=f)))"),
        ("open for its path", "import os; f = os.open(secret, os.O_PATH); tell(open(f'/proc/self/fd/{f}').read())"),
        ("open by number", "import os; f = call(2, secret.encode(), 0, 0); tell(os.read(f, 99))"),
        ("openat by number", "import os; f = call(257, -100, secret.encode(), 0, 0); tell(os.read(f, 99))"),
        ("openat2", "import os; f = call(437, -100, secret.encode(), bits(24), 24); tell(os.read(f, 99))"),
        ("openat2 with no links", "import os; f = call(437, -100, secret.encode(), bits(24, bytes(16) + bytes([4])), 24)\n"
         "tell(os.read(f, 99))"),
        ("sendfile", "import os; os.sendfile(1, os.open(secret, 0), 0, 99)"),
        ("splice", "import os; f = os.open(secret, 0); call(275, f, None, 1, None, 99, 0)"),
        ("map", "import os; f = os.open(secret, 0); libc.mmap.restype = ctypes.c_void_p\n"
         "tell(ctypes.string_at(libc.mmap(None, 4096, 1, 2, f, 0), 99))"),
        ("preadv", "import os; b = bytearray(99); os.preadv(os.open(secret, 0), [b], 0); tell(bytes(b))"),
        ("up and down again", "tell(open('../' * 30 + secret[1:]).read())"),
        ("root of itself", "tell(open('/proc/self/root' + secret).read())"),
        ("root of its thread", "tell(open('/proc/thread-self/root' + secret).read())"),
        ("its folder and up", "tell(open('/proc/self/cwd/' + '../' * 30 + secret[1:]).read())"),
        ("root of another process", "tell(open(f'/proc/{decoy}/root' + secret).read())"),
        ("folder of another process", "tell(open(f'/proc/{decoy}/cwd/secret').read())"),
        ("descriptor of another process", "tell(open(f'/proc/{decoy}/fd/{descriptor}').read())"),
        ("root of the first process", "tell(open('/proc/1/root' + secret).read())"),
        ("root of its parent", "import os; tell(open(f'/proc/{os.getppid()}/root' + secret).read())"),
        ("as a module", "sys.path.insert(0, folder); import canary"),
        ("as a script", "import runpy; runpy.run_path(folder + '/canary.py')"),
        ("as a line of a traceback", "import linecache; tell(linecache.getline(secret, 1))"),
        ("execute it", "import os; os.execv(folder + '/script', ['script'])"),
        ("execute it by number", "a = (ctypes.c_char_p * 2)(b'script', None); call(59, (folder + '/script').encode(), a, None)"),
        ("read it with a program", "import os; os.execv('/bin/cat', ['cat', secret])"),
        ("spawn a reader", "import os; os.waitpid(os.posix_spawn('/bin/cat', ['cat', secret], {}), 0)"),
        ("a handle of a file", "h = bytes.fromhex(handle); b = bits(len(h), h)\n"
         "for place in (b'/', b'/usr', b'/lib', b'/proc/self/exe'):\n"
         "    f = call(304, call(2, place, 0, 0), b, 0)\n"
         "    if f >= 0: tell(os.read(f, 99))"),
        ("a database", "import sqlite3; tell(sqlite3.connect(folder + '/base').execute('select * from t').fetchall())"),
        ("an archive", "import zipfile; tell(zipfile.ZipFile(folder + '/archive').read('a'))"),
        ("its loader", "import importlib.util as u; s = u.spec_from_file_location('c', folder + '/canary.py')\n"
         "s.loader.exec_module(u.module_from_spec(s))"),
        ("the key of its user", "import os; tell(open(home + '/.ssh/id').read())"),
        ("settings of its user", "tell(open(home + '/.netrc').read())"),
        ("memory of the machine as files", "tell(open('/dev/shm/' + shared_name).read())"),
        ("shared memory by name", "import os; f = libc.shm_open(('/' + shared_name).encode(), 0, 0); tell(os.read(f, 99))"),
    ],
)  # fmt: skip
_LINKS = python(
    "read files",
    _BOTH,
    [
        ("through a symbolic link", "import os; os.symlink(secret, 'l'); tell(open('l').read())"),
        ("through a hard link", "import os; os.link(secret, 'h'); tell(open('h').read())"),
        ("through a link to a folder", "import os; os.symlink(folder, 'l'); tell(open('l/secret').read())"),
        ("beside its own folder", "tell(open('../secret').read())"),
        ("beside its own folder, by descriptor", "import os; f = os.open('.', 0)\n"
         "tell(os.read(os.open('../secret', 0, dir_fd=f), 99))"),
        ("moved into its folder", "import os; os.rename(secret, 'mine'); tell(open('mine').read())"),
        ("a copy in the kernel", "import os; f = os.open('copy', os.O_RDWR | os.O_CREAT)\n"
         "os.copy_file_range(os.open(secret, 0), f, 99); os.lseek(f, 0, 0); tell(os.read(f, 99))"),
    ],
    has_folder=True,
)  # fmt: skip
_NAMES = python(
    "names and sizes",
    _BOTH,
    [
        ("stat", "import os; won(os.stat(secret).st_size > 0)"),
        ("lstat", "import os; won(os.lstat(secret).st_size > 0)"),
        ("stat by number", "won(call(4, secret.encode(), bits(200)) == 0)"),
        ("statx", "won(call(332, -100, secret.encode(), 0, 0xfff, bits(256)) == 0)"),
        ("stat by folder", "import os; won(os.stat('secret', dir_fd=os.open(folder, os.O_PATH)).st_size)"),
        ("access", "import os; won(os.access(secret, os.F_OK))"),
        ("access by number", "won(call(21, secret.encode(), 0) == 0)"),
        ("faccessat2", "won(call(439, -100, secret.encode(), 0, 0x200) == 0)"),
        ("whether it exists", "import os; won(os.path.exists(secret))"),
        ("readlink", "import os; tell(os.readlink(folder + '/link'))"),
        ("readlink by number", "b = bits(200); call(267, -100, (folder + '/link').encode(), b, 199); tell(b.value)"),
        ("the real path", "import os; tell(os.path.realpath(folder + '/link'))"),
        ("list a folder", "import os; tell(os.listdir(folder + '/names'))"),
        ("scan a folder", "import os; tell([each.name for each in os.scandir(folder + '/names')])"),
        ("walk a folder", "import os; tell(list(os.walk(folder)))"),
        ("find by pattern", "import glob; tell(glob.glob(folder + '/names/*'))"),
        ("list by number", "f = call(2, (folder + '/names').encode(), 0, 0); b = bits(4000)\n"
         "call(217, f, b, 4000); tell(b.raw)"),
        ("statfs", "won(call(137, secret.encode(), bits(200)) == 0)"),
        ("extended attributes", "import os; tell(os.getxattr(secret, 'user.word'))"),
        ("names of attributes", "import os; won(os.listxattr(secret))"),
        ("enter a folder", "import os; os.chdir(folder); won()"),
        ("name to handle", "won(call(303, -100, secret.encode(), bits(200, bytes([128])), bits(8), 0) == 0)"),
        ("watch a file", "won(call(254, call(294, 0), secret.encode(), 0xfff) >= 0)"),
        ("a tree of files", "won(call(428, -100, secret.encode(), 0) >= 0)"),
    ],
)  # fmt: skip
_SURROUNDINGS = python(
    "environment and sources",
    _BOTH,
    [
        ("its environment", "import os; tell(os.environ.get('STROP_CANARY'))"),
        ("its environment by library", "libc.getenv.restype = ctypes.c_char_p; tell(libc.getenv(b'STROP_CANARY'))"),
        ("its environment as a file", "tell([e for e in open('/proc/self/environ').read().split(chr(0)) if 'STROP' in e])"),
        ("environment of its caller", "tell([e for e in open(f'/proc/{caller}/environ').read().split(chr(0)) if 'STROP' in e])"),
        ("environment of a process", "tell(open(f'/proc/{decoy}/environ').read())"),
        ("environments of all", "import glob\nfor path in glob.glob('/proc/[0-9]*/environ'):\n    try: t = open(path, 'rb').read()\n"
         "    except OSError: continue\n    if b'STROP_CANARY=' in t: tell(t.split(b'STROP_CANARY=')[1][:16])"),
        ("descriptors that were left open", "import os\nfor n in range(3, 64):\n    try: tell(os.pread(n, 99, 0))\n"
         "    except OSError: pass"),
        ("descriptors as files", "import os\nfor n in os.listdir('/proc/self/fd'):\n    if int(n) > 2:\n"
         "        try: tell(os.pread(os.open('/proc/self/fd/' + n, 0), 99, 0))\n        except OSError: pass"),
        ("sources of the sandbox", "import hashlib; tell(hashlib.sha256(nonce.encode() + open(source, 'rb').read()).hexdigest())"),
        ("the list of users", "import hashlib; tell(hashlib.sha256(nonce.encode() + open('/etc/passwd', 'rb').read()).hexdigest())"),
        ("mounts of the machine", "import hashlib; t = open('/proc/self/mounts', 'rb').read()\n"
         "tell(hashlib.sha256(nonce.encode() + t).hexdigest())"),
    ],
)  # fmt: skip
_OF_PYTHON = python(
    "environment and sources",
    Against.PYTHON,
    [
        ("packages beside the interpreter", "import hashlib\n"
         "tell(hashlib.sha256(nonce.encode() + open(package, 'rb').read()).hexdigest())"),
        ("list of packages", "import os; won(os.listdir(packages))"),
        ("import a package", "sys.path.append(packages); m = __import__(package_name); won(m.__file__.startswith(packages))"),
        ("import the sandbox", "sys.path.append(root); import strop.types; won()"),
        ("all processes", "import os; won(os.listdir('/proc'))"),
        ("the root folder", "import os; won(os.listdir('/'))"),
        ("temporary files", "import os; won(len(os.listdir('/tmp')) >= 0)"),
        ("its memory map", "won(open('/proc/self/maps').read())"),
        ("its memory", "won(open('/proc/self/mem', 'rb').fileno() >= 0)"),
        ("settings of the kernel", "won(open('/proc/sys/kernel/hostname').read())"),
        ("the command line of the kernel", "won(open('/proc/cmdline').read())"),
        ("its cgroups", "won(open('/proc/self/cgroup').read())"),
        ("name of the machine", "import os; won(os.uname().nodename)"),
    ],
)  # fmt: skip
_SHELL = shell(
    "read files",
    [
        ("sh: cat", "cat $secret"),
        ("sh: redirect", "read x < $secret; echo $x"),
        ("sh: source", ". $folder/script"),
        ("sh: find", "find $folder -type f"),
        ("sh: grep", "grep -r . $folder"),
        ("sh: tar", "tar -cf - -C / ${secret#/} | cat"),
        ("sh: dd", "dd if=$secret"),
        ("sh: loader", "$(ls /lib64/ld-linux-x86-64.so.2) /bin/cat $secret"),
        ("sh: perl", "perl -e 'open(F, $ARGV[0]); print <F>' $secret"),
        ("sh: environment", "env | grep STROP"),
        ("sh: environment of its caller", "tr '\\0' '\\n' </proc/$caller/environ | grep STROP"),
        ("sh: home", "cat $home/.ssh/id"),
        ("sh: link", "ln -s $secret l && cat l", ),
        ("sh: diff", "diff $secret /dev/null"),
        ("sh: checksum", "cksum $secret && echo WON $nonce"),
        ("sh: test", "test -e $secret && echo WON $nonce"),
    ],
    has_folder=True,
)  # fmt: skip
ATTACKS: tuple[Attack, ...] = (*_OPEN, *_LINKS, *_NAMES, *_SURROUNDINGS, *_OF_PYTHON, *_SHELL)
