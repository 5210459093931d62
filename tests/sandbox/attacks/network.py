"""Attacks that speak with what lies outside: by every kind of socket, to listeners, or as a listener."""

# ruff: noqa: E501 - a program is one line of a table
from __future__ import annotations

from tests.sandbox.attacks.attack import Against, Attack, python, shell

_TCP4 = "pack('!2sH4s8s', (2).to_bytes(2, 'little'), port, bytes([127, 0, 0, 1]), bytes(8))"
_TALK = python(
    "network",
    Against.BOTH,
    [
        ("connect", "import socket; socket.create_connection(('127.0.0.1', port), 1).send(nonce.encode())"),
        ("connect by number", f"s = call(41, 2, 1, 0); call(42, s, {_TCP4}, 16); call(1, s, nonce.encode(), len(nonce))"),
        ("connect to nowhere", "import socket; socket.create_connection(('0.0.0.0', port), 1).send(nonce.encode())"),
        ("connect by version 6", "import socket; socket.create_connection(('::1', port6), 1).send(nonce.encode())"),
        ("connect by a mapped address", "import socket; s = socket.socket(10, 1); s.connect(('::ffff:127.0.0.1', port)); s.send(nonce.encode())"),
        ("connect without waiting", "import socket, time; s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', port)); time.sleep(.2); s.send(nonce.encode())"),
        ("open fast", "import socket; s = socket.socket(); s.sendto(nonce.encode(), 0x20000000, ('127.0.0.1', port))"),
        ("a protocol of many paths", "import socket; s = socket.socket(2, 1, 262); s.connect(('127.0.0.1', port)); s.send(nonce.encode())"),
        ("a datagram", "import socket; socket.socket(2, 2).sendto(nonce.encode(), ('127.0.0.1', port))"),
        ("a datagram by number", f"s = call(41, 2, 2, 0); call(44, s, nonce.encode(), len(nonce), 0, {_TCP4}, 16)"),
        ("a datagram by version 6", "import socket; socket.socket(10, 2).sendto(nonce.encode(), ('::1', port6))"),
        ("a connected datagram", "import socket; s = socket.socket(2, 2); s.connect(('127.0.0.1', port)); s.send(nonce.encode())"),
        ("a message", "import socket; socket.socket(2, 2).sendmsg([nonce.encode()], [], 0, ('127.0.0.1', port))"),
        ("a light datagram", "import socket; socket.socket(2, 2, 136).sendto(nonce.encode(), ('127.0.0.1', port))"),
        ("a socket by path", "import socket; s = socket.socket(1, 1); s.connect(folder + '/door'); s.send(nonce.encode())"),
        ("a socket by path and number", "s = call(41, 1, 1, 0); n = (folder + '/door').encode()\n"
         "call(42, s, pack('H100s', 1, n), 102); call(1, s, nonce.encode(), len(nonce))"),
        ("a datagram by path", "import socket; socket.socket(1, 2).sendto(nonce.encode(), folder + '/slot')"),
        ("a socket by an abstract name", "import socket; s = socket.socket(1, 1); s.connect(chr(0) + door); s.send(nonce.encode())"),
        ("an abstract name by number", "s = call(41, 1, 1, 0); n = bytes(1) + door.encode()\n"
         "call(42, s, pack('H', 1) + n, 2 + len(n)); call(1, s, nonce.encode(), len(nonce))"),
        ("a datagram by an abstract name", "import socket; socket.socket(1, 2).sendto(nonce.encode(), chr(0) + door + 'd')"),
        ("listen", "import socket; s = socket.create_server(('127.0.0.1', free)); s.settimeout(1)\n"
         "tell(s.accept()[0].recv(99))"),
        ("listen by version 6", "import socket; s = socket.create_server(('::1', free), family=10); s.settimeout(1)\n"
         "tell(s.accept()[0].recv(99))"),
        ("hear datagrams", "import socket; s = socket.socket(2, 2); s.bind(('127.0.0.1', free)); s.settimeout(1)\n"
         "tell(s.recv(99))"),
        ("listen by an abstract name", "import socket; s = socket.socket(1, 1); s.bind(chr(0) + door + 'x'); s.listen(); s.settimeout(1)\n"
         "tell(s.accept()[0].recv(99))"),
        ("listen by path", "import socket; s = socket.socket(1, 1); s.bind(folder + '/x'); s.listen(); s.settimeout(1)\n"
         "tell(s.accept()[0].recv(99))"),
        ("ask a resolver", "import socket, struct; q = struct.pack('>6H', 1, 256, 1, 0, 0, 0) + bytes([12]) + nonce.encode() + bytes([0, 0, 1, 0, 1])\n"
         "socket.socket(2, 2).sendto(q, ('127.0.0.1', port))"),
        ("ask the web", "import urllib.request as u; u.urlopen(f'http://127.0.0.1:{port}/{nonce}', timeout=.5)"),
        ("a log of the machine", "import socket; s = socket.socket(1, 2); s.connect(folder + '/slot'); s.send(nonce.encode())"),
        ("interfaces", "import socket; won([n for _, n in socket.if_nameindex() if n != 'lo'])"),
        ("interfaces as files", "import os; won([n for n in os.listdir('/sys/class/net') if n != 'lo'])"),
        ("routes as a file", "won(len(open('/proc/net/route').readlines()) > 1)"),
        ("listeners as a file", "won(f':{port:04X}' in open('/proc/net/tcp').read())"),
        ("names of sockets as a file", "won(door in open('/proc/net/unix').read())"),
        ("listeners by the kernel's own socket", "import socket, struct; s = socket.socket(16, 3, 4)\n"
         "s.send(struct.pack('IHHII', 72, 20, 0x301, 1, 0) + struct.pack('BBBBI', 2, 6, 0, 0, 1 << 10) + bytes(48)); s.settimeout(1)\n"
         "won(struct.pack('!H', port) in s.recv(1 << 16))"),
        ("a raw socket", "won(call(41, 2, 3, 1) >= 0)"),
        ("packets", "won(call(41, 17, 3, 0) >= 0)"),
        ("packets without a head", "won(call(41, 17, 2, 0) >= 0)"),
        ("sockets of the host", "won(call(41, 40, 1, 0) >= 0)"),
        ("datagrams of the host", "won(call(41, 40, 2, 0) >= 0)"),
        ("packets of the host", "won(call(41, 40, 5, 0) >= 0)"),
        ("fast packets", "won(call(41, 44, 3, 0) >= 0)"),
        ("events of the kernel", "import socket; s = socket.socket(16, 2, 15); s.bind((0, 1)); won()"),
        ("the kernel's watch", "import socket; socket.socket(16, 3, 9); won()"),
        ("the terminal of its caller", "open(tty, 'w').write(nonce)"),
        ("the terminal by number", "f = call(2, tty.encode(), 1 | 0o400, 0); call(1, f, nonce.encode(), len(nonce))"),
        ("type for the user", "import fcntl, os\nf = os.open(tty, os.O_RDWR | os.O_NOCTTY)\nfor c in nonce: fcntl.ioctl(f, 0x5412, c.encode())"),
    ],
)  # fmt: skip
_OF_PYTHON = python(
    "network",
    Against.PYTHON,
    [
        ("a socket", "won(call(41, 2, 1, 0) >= 0)"),
        ("a socket of version 6", "won(call(41, 10, 1, 0) >= 0)"),
        ("a datagram socket", "won(call(41, 2, 2, 0) >= 0)"),
        ("a socket of the machine", "won(call(41, 1, 1, 0) >= 0)"),
        ("a pair of sockets", "won(call(53, 1, 1, 0, (ctypes.c_int * 2)()) == 0)"),
        ("the kernel's own sockets", "won(call(41, 16, 3, 0) >= 0)"),
        ("an echo socket", "won(call(41, 2, 2, 1) >= 0)"),
        ("many files at once", "import select; won(select.epoll().fileno() >= 0)"),
        ("a clock as a file", "won(call(283, 1, 0) >= 0)"),
        ("a count as a file", "won(call(290, 0, 0) >= 0)"),
        ("signals as a file", "won(call(289, -1, bits(8), 8, 0) >= 0)"),
        ("a pipe", "import os; won(os.pipe()[0] >= 0)"),
        ("size of a pipe", "import fcntl; won(fcntl.fcntl(1, 1031, 1 << 20) > 0)"),
        ("lock of a file", "import fcntl; fcntl.fcntl(1, 9, 0); won()"),
        ("kind of its terminal", "won(call(16, 1, 0x541b, bits(8)) == 0)"),
    ],
)
_SHELL = shell(
    "network",
    [
        ("bash: connect", "bash -c \"exec 3<>/dev/tcp/127.0.0.1/$port; echo $nonce >&3\""),
        ("bash: datagram", "bash -c \"echo $nonce >/dev/udp/127.0.0.1/$port\""),
        ("bash: connect by version 6", "bash -c \"exec 3<>/dev/tcp/::1/$port6; echo $nonce >&3\""),
        ("sh: curl", "curl -m 1 http://127.0.0.1:$port/$nonce"),
        ("sh: wget", "wget -T 1 -t 1 -qO- http://127.0.0.1:$port/$nonce"),
        ("sh: curl by path", "curl -m 1 --unix-socket $folder/door http://a/$nonce"),
        ("sh: curl by an abstract name", "curl -m 1 --abstract-unix-socket $door http://a/$nonce"),
        ("sh: perl", "perl -MSocket -e 'socket(S,2,1,0);connect(S,pack_sockaddr_in($ARGV[0],inet_aton(\"127.0.0.1\")));syswrite(S,$ARGV[1])' $port $nonce"),
        ("sh: openssl", "timeout 1 openssl s_client -connect 127.0.0.1:$port -servername $nonce </dev/null"),
        ("sh: terminal", "echo $nonce >$tty"),
        ("sh: message to a user", "echo $nonce | timeout 1 write root ${tty#/dev/}"),
    ],
)  # fmt: skip
ATTACKS: tuple[Attack, ...] = (*_TALK, *_OF_PYTHON, *_SHELL)
