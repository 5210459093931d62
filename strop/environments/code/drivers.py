"""Python that runs in the sandbox: a program on its inputs, and a check that asks for a program's values."""

from __future__ import annotations

# Values leave as Python literals, which JSON would blur: a tuple is no list. What has no literal raises TypeError.
_LITERALS = """
import io, json, sys
told = sys.stdout
def say(*said): print(json.dumps(said), file=told, flush=True)
def literal(value, depth=0):
    kind = next((each for each in (bool, int, float, complex, str, bytes) if isinstance(value, each)), None)
    if value is None or kind in (bool, complex): return repr(value)
    if kind is float: return float.__repr__(value) if value - value == 0 else "1e999" if value > 0 else "-1e999"
    if kind: return kind.__repr__(value)
    if depth > 50: raise TypeError("too deep")
    if isinstance(value, dict):
        return "{" + ", ".join(literal(k, depth + 1) + ": " + literal(v, depth + 1) for k, v in value.items()) + "}"
    if type(value).__name__ in ("list", "deque"): return "[" + ", ".join(literal(v, depth + 1) for v in value) + "]"
    if isinstance(value, tuple): return "(" + "".join(literal(v, depth + 1) + ", " for v in value) + ")"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(literal(v, depth + 1) for v in value)) + "}" if value else "set()"
    raise TypeError(type(value).__name__)
"""

# What a program itself prints goes nowhere, or is its answer; each answer leaves before the next call.
PROGRAM = f"""{_LITERALS}
def place(trace):
    line = 0
    while trace:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == "<completion>" else line
        trace = trace.tb_next
    return line
def tried(work, *given):
    try: return ("value", work(*given))
    except MemoryError: raise
    except SyntaxError as error: return ("syntax", error.lineno or 0, type(error).__name__)
    except BaseException as error: return ("error", place(error.__traceback__), type(error).__name__)
asked, space = json.loads(sys.stdin.read()), {{"__name__": "completion"}}
sys.stdout = io.StringIO()
def load():
    exec(compile(asked["setup"], "<setup>", "exec"), space)
    exec(compile(asked["program"], "<completion>", "exec"), space)
    return found() if asked["form"] == "call" else valued
def found():
    name = asked["function"]
    return space[name] if name in space or "Solution" not in space else getattr(space["Solution"](), name)
def valued(expression):
    return literal(eval(compile(expression, "<test>", "eval"), space))
def printed(given):
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    try: exec(compile(asked["program"], "<completion>", "exec"), {{"__name__": "__main__"}})
    except SystemExit: pass
    return sys.stdout.buffer.getvalue().decode("utf-8", "replace")
ready = ("value", printed) if asked["form"] == "stdin" else tried(load)
if ready[0] != "value": say(*ready)
else:
    for given in asked["inputs"]:
        answer = tried(ready[1], *(given if asked["form"] == "call" else (given,)))
        try: say(*answer)
        except (TypeError, ValueError, RecursionError) as error: say("error", 0, type(error).__name__)
"""

# A check asks a stand-in of the function: values that are known are answered, others are asked for and end its assert.
CHECK = f"""{_LITERALS}
import ast, builtins
asked = json.loads(sys.stdin.read())
sys.stdout = io.StringIO()
need, passed, names = [], [], asked["names"]
class Unknown(BaseException): pass
def stand_in(name):
    def called(*given, **named):
        words = [literal(each) for each in given] + [key + "=" + literal(each) for key, each in named.items()]
        source = name + "(" + ", ".join(words) + ")"
        if source not in asked["known"]:
            need.append(source)
            raise Unknown
        kind, said = asked["known"][source]
        if kind == "value": return ast.literal_eval(said)
        error = getattr(builtins, said, RuntimeError)
        raise error(said) if isinstance(error, type) and issubclass(error, Exception) else RuntimeError(said)
    called.__name__ = name
    return called
TRIED = "try: passed_.append(bool(1))\\nexcept Unknown_: pass\\nexcept Exception: passed_.append(False)"
class Tried(ast.NodeTransformer):
    def visit_Assert(self, node):
        if isinstance(node.test, ast.Constant): return ast.copy_location(ast.Pass(), node)
        inner = ast.parse(TRIED).body[0]
        inner.body[0].value.args[0].args[0] = node.test
        return ast.copy_location(inner, node)
space = {{"__name__": "check", "passed_": passed, "Unknown_": Unknown}}
try:
    exec(compile(asked["setup"], "<setup>", "exec"), space)
    space.update((name, stand_in(name)) for name in names)
    tree = ast.fix_missing_locations(Tried().visit(ast.parse(asked["code"])))
    exec(compile(tree, "<check>", "exec"), space)
    if "check" in space: space["check"](space[names[0]])
except Unknown: pass
except Exception as error: passed.append(False)
say(need, passed)
"""
