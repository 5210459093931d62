"""Honest programs that show what a hostile one may have left: whatever they say at first, they say always."""

IN_PYTHON = """
import json, os, sys, gc, random, decimal, fractions, signal, builtins, warnings
def tried(what):
    try: return what()
    except Exception as error: return type(error).__name__
try: import resource
except Exception: resource = None
say = [6 * 7, 7 + 1 - 1, json.loads("[1]"), json.dumps([2]), len("ab"), sorted([2, 1]), sorted(os.environ)]
say += [tried(os.getcwd), os.path.isdir("/"), tried(lambda: os.umask(0o22)), list(sys.path), sys.argv[1:]]
say += [sys.getrecursionlimit(), sys.get_int_max_str_digits(), str(decimal.Decimal(1) / 3), random.random()]
say += [tried(lambda: str(signal.getsignal(signal.SIGUSR2))), tried(lambda: signal.getitimer(0)), gc.isenabled()]
say += [tried(lambda: resource.getrlimit(resource.RLIMIT_NOFILE)), tried(lambda: os.nice(0)), gc.get_threshold()]
say += [tried(lambda: resource.getrlimit(resource.RLIMIT_CORE)), tried(lambda: sorted(os.sched_getaffinity(0)))]
say += [[n for n in range(3, 64) if tried(lambda: os.fstat(n)) != "OSError"], len(vars(builtins))]
say += ["planted" in globals(), "planted" in sys.modules, str(fractions.Fraction(1, 2) + 1), len(warnings.filters)]
say += [str(sys.gettrace()), str(sys.getprofile()), sys.excepthook is sys.__excepthook__, len(sys.meta_path)]
say += [round(sys.getswitchinterval(), 6), b"a\\xff".decode("utf-8", "replace"), os._exit.__name__, sys.exit.__name__]
say += [tried(lambda: compile("3", "c", "eval").co_consts), tried(lambda: __import__("random").Random(2).random())]
print(say)
"""
IN_SHELL = "echo $((6 * 7)); env | sort; ls -A /tmp /dev/shm ~; ulimit -a; pwd; umask; id -u"
