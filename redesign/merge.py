"""Merges modules of a room into one: merge.py ROOT TABLE (target, docstring, modules)."""
from __future__ import annotations
import csv, subprocess, sys
from pathlib import Path
import time


def git(*words, cwd):
    for _ in range(60):
        done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True)
        if done.returncode == 0 or "index.lock" not in done.stderr: break
        time.sleep(0.3)
    if done.returncode: print("GIT", words, done.stderr[-200:])

sys.path.insert(0, str(Path(__file__).parent))
import codemod
from inline import Merged, Paper, Source, Unit, formatted_length, rewrite, section, statement
from owners import Tree

class Room(Paper):
    def __init__(self, tree, target, doc, modules):
        self.doc = doc
        super().__init__(tree, target, modules)
    def merged(self):
        package = self.tree.package
        units = [Unit(package / f, Tree.dotted(f)) for f in self.modules]
        # the target's own module first, so that its names stay
        mine = {u.dotted: u for u in units}
        import builtins
        imports, taken, typing_only = {}, {}, {}
        shadowed = set().union(*(u.free() for u in units)) & set(dir(builtins))
        imported = {local: what for u in units for local, what in u.locals().items() if what[0] not in mine}
        order = sorted(units, key=lambda u: u.dotted != self.dotted)
        for unit in order:
            for name in dict.fromkeys(unit.defined):
                new = name
                if name in taken or name in imported or name in shadowed:
                    mark = "_" if name.startswith("_") else ""
                    bare = name.lstrip("_")
                    if bare.isupper(): new = f"{mark}{unit.stem.upper()}_{bare}"
                    elif bare[:1].isupper(): new = f"{mark}{''.join(w.capitalize() for w in unit.stem.split('_'))}{bare}"
                    else: new = f"{mark}{bare}_of_{unit.stem}"
                    assert new not in taken and new not in imported, (new, unit.dotted)
                    unit.renames[name] = new
                    self.public[unit.dotted, name] = new
                taken[new] = unit
        for unit in units:
            for m, n, a, typing in unit.imports:
                local = a or (n or m.split(".")[0])
                if m in mine:
                    target = mine[m].renames.get(n, n)
                    if target != local: unit.renames[local] = target
                    continue
                if f"{m}.{n}" in mine: raise SystemExit(f"{unit.dotted} imports module {m}.{n}")
                what = (m, n)
                if imports.get(local, what) != what:
                    other = f"{local}_of_{m.rpartition('.')[2]}"
                    unit.renames[local] = other
                    local = other
                imports[local] = what
                typing_only[local] = typing_only.get(local, True) and typing
        lines = [f'"""{self.doc}"""', "", "from __future__ import annotations", ""]
        runtime = [statement(l, w) for l, w in imports.items() if not typing_only[l]]
        typ = [statement(l, w) for l, w in imports.items() if typing_only[l]]
        lines += runtime
        if typ:
            if "from typing import TYPE_CHECKING" not in runtime: lines.append("from typing import TYPE_CHECKING")
            lines += ["", "if TYPE_CHECKING:", *(f"    {s}" for s in typ)]
        parts = ["\n".join(lines)] + [section(u) + u.body() for u in units]
        return "\n\n\n".join(parts) + "\n"

root, table = Path(sys.argv[1]), Path(sys.argv[2])
tree = Tree(root)
where, renamed, contents, dead, by = {}, {}, {}, [], {}
for row in csv.DictReader(table.open(), delimiter="\t"):
    modules = row["modules"].split()
    missing = [m for m in modules if m not in tree.files]
    if missing: print("MISSING", missing); modules = [m for m in modules if m in tree.files]
    room = Room(tree, row["target"], row["doc"], modules)
    text = room.merged()
    size = formatted_length(text, root)
    if size > 300: print("TOO LONG", row["target"], size); continue
    contents[row["target"]] = text
    where |= {m: row["target"] for m in modules}
    renamed |= room.public
    dead += [m for m in modules if m != row["target"]]
    by[row["target"]] = modules
moves = Merged(root, where, renamed)
taken = set(moves.tests.values())
for test in list(moves.tests):  # a test of a merged module: test_TARGET_MODULE.py beside the target's
    folder, _, name = test.rpartition("/")
    if not name.startswith("test_"): continue
    module = f"{folder}/{name[5:]}"
    if module in where and where[module] != module:
        tf, _, tn = where[module].rpartition("/")
        new = f"{tf}/test_{tn}"
        if new in taken: new = f"{tf}/test_{tn.removesuffix('.py')}_{name[5:]}"
        taken.add(new); moves.tests[test] = new
for m in dead: git("rm", "-qf", f"strop/{m}", cwd=root)
for f, text in contents.items():
    (tree.package / f).parent.mkdir(parents=True, exist_ok=True)
    (tree.package / f).write_text(text)
rewrite(root, moves)
for old, new in [("tests/" + o, "tests/" + n) for o, n in moves.tests.items() if o != n]:
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    git("mv", old, new, cwd=root)
codemod.tidy(root, moves)
print(len(dead), "modules fewer; renamed:", *sorted(f"{m}.{n} -> {new}" for (m, n), new in renamed.items()), sep="\n  ")
