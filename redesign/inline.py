"""One paper, one file: modules that belong to one recipe become sections of its file, or of its folder above 300 lines.

    python inline.py --root CHECKOUT [--only class/key,...] [--limit N]
"""
from __future__ import annotations
import argparse, ast, builtins, re, subprocess, sys, textwrap
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import codemod
from owners import Tree

ROLE = {"strategies": "strategy", "agents": "agent", "advantages": "advantage", "rewards": "reward", "gates": "gate", "losses": "loss", "samplers": "sampler",
        "budgets": "budget", "values": "value", "estimators": "estimator", "task_generators": "task_generator", "corrections": "correction", "reductions": "reduction",
        "trainers": "trainer", "guidances": "guidance", "replay": "buffer", "step_scales": "step_scale", "views": "view"}
LIMIT = 300


class Unit:
    """One module on its way into a file: its imports, its body as text, and the names that it makes."""

    def __init__(self, path: Path, dotted: str):
        self.dotted, self.stem = dotted, path.stem
        self.text = path.read_text()
        self.tree = ast.parse(self.text)
        self.doc = ast.get_docstring(self.tree) or ""
        self.imports: list[tuple[str, str, str | None, bool]] = []  # module, name ("" for import), asname, for types alone
        self.gone: list[tuple[int, int]] = []  # line spans of docstring and imports
        for node in self.tree.body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) and node is self.tree.body[0]:
                self._drop(node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._take(node, False); self._drop(node)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and all(isinstance(n, ast.Import | ast.ImportFrom) for n in node.body):
                for n in node.body: self._take(n, True)
                self._drop(node)
        self.defined = [n for s in self.tree.body for n in names_of(s)]
        self.renames: dict[str, str] = {}

    def _take(self, node, typing: bool) -> None:
        if isinstance(node, ast.Import):
            self.imports += [(a.name, "", a.asname, typing) for a in node.names]
        elif node.module != "__future__":
            self.imports += [(node.module, a.name, a.asname, typing) for a in node.names]

    def _drop(self, node) -> None:
        self.gone.append((node.lineno, node.end_lineno))

    def locals(self) -> dict[str, tuple[str, str]]:
        """Imported names by what they are called here."""
        return {(a or (n or m.split(".")[0])): (m, n) for m, n, a, _ in self.imports}

    def free(self) -> set[str]:
        """Names that it reads at the level of the module, or that are nobody's: builtins."""
        return {n.id for n in global_names(self.tree)}

    def body(self) -> str:
        lines = self.text.split("\n")
        edits = sorted(((n.lineno, n.col_offset, n.end_col_offset, self.renames[n.id]) for n in global_names(self.tree) if n.id in self.renames), reverse=True)
        edits += sorted(((l, c, c + len(o.encode()), self.renames[o]) for l, c, o in definitions(self.tree, self.text) if o in self.renames), reverse=True)
        for line, start, end, new in sorted(set(edits), reverse=True):
            raw = lines[line - 1].encode()
            lines[line - 1] = (raw[:start] + new.encode() + raw[end:]).decode()
        for first, last in self.gone:
            for i in range(first - 1, last): lines[i] = "\0"
        return "\n".join(l for l in lines if l != "\0").strip("\n")


def names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef): return [node.name]
    if isinstance(node, ast.Assign): return [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name): return [node.target.id]
    if isinstance(node, ast.If | ast.Try | ast.For | ast.With): return [n for s in ast.iter_child_nodes(node) if isinstance(s, ast.stmt) for n in names_of(s)]
    return []


def definitions(tree: ast.Module, text: str):
    """Places of the names of top-level functions and classes."""
    lines = text.split("\n")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            line = node.lineno
            column = re.search(rf"\b(?:def|class)\s+({re.escape(node.name)})\b", lines[line - 1]).start(1)
            yield line, len(lines[line - 1][:column].encode()), node.name


class Scope(ast.NodeVisitor):
    """Names that mean the module's: not bound by a function or class around them."""

    def __init__(self) -> None:
        self.found: list[ast.Name] = []
        self.stack: list[tuple[str, set[str]]] = []

    def visit_Name(self, node: ast.Name) -> None:
        for number, (kind, bound) in enumerate(reversed(self.stack)):
            if node.id in bound and (kind != "class" or number == 0): return
        self.found.append(node)

    def _function(self, node) -> None:
        a = node.args
        arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])]
        for each in [*getattr(node, "decorator_list", []), *a.defaults, *filter(None, a.kw_defaults), *filter(None, (x.annotation for x in arguments)), *filter(None, [getattr(node, "returns", None)])]:
            self.visit(each)
        body = node.body if isinstance(node.body, list) else [node.body]
        bound = {x.arg for x in arguments} | bound_in(body)
        self.stack.append(("function", bound))
        for s in body: self.visit(s)
        self.stack.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for each in [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]: self.visit(each)
        self.stack.append(("class", bound_in(node.body)))
        for s in node.body: self.visit(s)
        self.stack.pop()

    def _comprehension(self, node) -> None:
        bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self.visit(node.generators[0].iter)
        self.stack.append(("function", bound))
        for number, g in enumerate(node.generators):
            if number: self.visit(g.iter)
            for c in g.ifs: self.visit(c)
        for part in ("elt", "key", "value"):
            if hasattr(node, part): self.visit(getattr(node, part))
        self.stack.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def bound_in(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name); return
        if isinstance(node, ast.Lambda): return
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            for n in ast.walk(node):
                if isinstance(n, ast.NamedExpr): found.add(n.target.id)
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del): found.add(node.id)
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update((a.asname or a.name.split(".")[0]) for a in node.names)
        if isinstance(node, ast.ExceptHandler) and node.name: found.add(node.name)
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name: found.add(node.name)
        for child in ast.iter_child_nodes(node): walk(child)
    for s in body: walk(s)
    return found


def global_names(tree: ast.Module) -> list[ast.Name]:
    scope = Scope()
    scope.visit(tree)
    return scope.found


class Paper:
    """A recipe with the modules that it owns."""

    def __init__(self, tree: Tree, recipe: str, modules: list[str]):
        self.tree, self.recipe = tree, recipe
        self.modules = self.ordered(modules)
        self.package = recipe.removesuffix(".py")
        self.dotted = Tree.dotted(recipe)
        self.public: dict[tuple[str, str], str] = {}  # (module, name) -> its name in the file, where that changed

    def ordered(self, modules: list[str]) -> list[str]:
        done: list[str] = []
        def visit(f: str) -> None:
            if f in done: return
            for g in sorted(self.tree.imports[f]):
                if g in modules: visit(g)
            done.append(f)
        for f in sorted(modules): visit(f)
        return done

    def merged(self) -> str:
        package = self.tree.package
        units = [Unit(package / f, Tree.dotted(f)) for f in self.modules]
        recipe = Unit(package / self.recipe, self.dotted)
        every = [recipe, *units]  # the recipe keeps its names
        mine = {u.dotted: u for u in every}
        imports: dict[str, tuple[str, str]] = {}  # name in the file -> what it is
        taken: dict[str, Unit | None] = {}
        typing_only: dict[str, bool] = {}
        shadowed = set().union(*(u.free() for u in every)) & set(dir(builtins))
        # 1. what every unit defines: first come, first served; names of imports of any unit are taken by them
        imported = {local: what for u in every for local, what in u.locals().items() if what[0] not in mine}
        for unit in every:
            for name in dict.fromkeys(unit.defined):
                new = name
                if name in taken or (name in imported) or (name in shadowed and name in dir(builtins)):
                    if name in unit.locals() and unit.locals()[name][0] not in mine:
                        raise SystemExit(f"{unit.dotted} defines and imports {name}")
                    mark = "_" if name.startswith("_") else ""
                    new = f"{mark}{name.lstrip('_')}_of_{unit.stem}" if not name.lstrip("_")[:1].isupper() else (f"{mark}{camel(unit.stem)}{name.lstrip('_')}" if not name.isupper() else f"{mark}{unit.stem.upper()}_{name.lstrip('_')}")
                    assert new not in taken and new not in imported, (new, unit.dotted)
                    unit.renames[name] = new
                    self.public[unit.dotted, name] = new
                taken[new] = unit
        # 2. imports: one name, one thing
        for unit in every:
            for m, n, a, typing in unit.imports:
                local = a or (n or m.split(".")[0])
                if m in mine:  # from one of our own
                    target = mine[m].renames.get(n, n)
                    if target != local: unit.renames[local] = target
                    continue
                if f"{m}.{n}" in mine:
                    raise SystemExit(f"{unit.dotted} imports module {m}.{n}, which is to be merged")
                what = (m, n)
                if imports.get(local, what) != what:
                    other = f"{local}_of_{m.rpartition('.')[2]}"
                    unit.renames[local] = other
                    local = other
                imports[local] = what
                typing_only[local] = typing_only.get(local, True) and typing
        lines = [f'"""{recipe_doc(recipe)}"""', "", "from __future__ import annotations", ""]
        runtime = [statement(local, what) for local, what in imports.items() if not typing_only[local]]
        typing_ = [statement(local, what) for local, what in imports.items() if typing_only[local]]
        lines += runtime
        if typing_:
            if "from typing import TYPE_CHECKING" not in runtime: lines.append("from typing import TYPE_CHECKING")
            lines += ["", "if TYPE_CHECKING:", *(f"    {s}" for s in typing_)]
        parts = ["\n".join(lines)]
        for unit in units:
            parts.append(section(unit) + unit.body())
        parts.append(recipe.body())
        return "\n\n\n".join(parts) + "\n"


def camel(stem: str) -> str:
    return "".join(w.capitalize() for w in stem.split("_"))


def recipe_doc(unit: Unit) -> str:
    node = unit.tree.body[0]
    raw = "\n".join(unit.text.split("\n")[node.lineno - 1 : node.end_lineno]).strip()
    return raw[3:-3]


def section(unit: Unit) -> str:
    """A module's docstring as comments above its section; a paper's key stands in the record already."""
    said = [line for line in unit.doc.split("\n") if not line.startswith("Papers:")]
    text = "\n".join(said).strip()
    text = re.sub(r"\s*Papers: [\w, .-]+$", "", text)
    lines: list[str] = []
    for block in text.split("\n\n"):
        rows = block.split("\n")
        if any(row.startswith((" ", "-", "|")) for row in rows):
            lines += [piece for row in rows for piece in textwrap.wrap(row, 118, subsequent_indent=" " * (len(row) - len(row.lstrip()))) or [""]]
        else:
            lines += textwrap.wrap(" ".join(rows), 118, break_on_hyphens=False, break_long_words=False)
        lines.append("")
    return "".join(f"# {line}".rstrip() + "\n" for line in lines[:-1]) + "\n"


def statement(local: str, what: tuple[str, str]) -> str:
    module, name = what
    if not name: return f"import {module}" + (f" as {local}" if local != module.split(".")[0] else "")
    return f"from {module} import {name}" + (f" as {local}" if local != name else "")


class Merged(codemod.Moves):
    """References follow: many modules became one."""

    def __init__(self, root: Path, where: dict[str, str], renamed: dict[tuple[str, str], str]):
        super().__init__(root, [])
        self.paths = {**self.paths, **where}
        self.modules = {codemod.dotted(o): codemod.dotted(n).removesuffix(".__init__") for o, n in self.paths.items() if o.endswith(".py") and not o.endswith("__init__.py")}
        self.renamed = renamed


class Source(codemod.Source):
    """Imports of names that had to change in the merge keep their old name with `as`; strings change."""

    def _import_from(self, node: ast.ImportFrom) -> None:
        renamed = self.moves.renamed
        hit = [a for a in node.names if node.module and (node.module, a.name) in renamed]
        if hit:
            parts = []
            for a in node.names:
                new = renamed.get((node.module, a.name), a.name)
                local = a.asname or a.name
                parts.append(f"{new} as {local}" if new != local else new)
            self._replace(node, f"from {self.moves.dotted(node.module)} import {', '.join(parts)}")
            return
        super()._import_from(node)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    tree = Tree(chosen.root)
    owners = tree.owners()
    by: dict[str, list[str]] = defaultdict(list)
    for f, o in owners.items():
        if not chosen.only or o.removeprefix("recipes/").removesuffix(".py") in chosen.only.split(","): by[o].append(f)
    where: dict[str, str] = {}
    renamed: dict[tuple[str, str], str] = {}
    contents: dict[str, str] = {}
    moved: list[tuple[str, str]] = []
    dead: list[str] = []
    for recipe, modules in sorted(by.items()):
        paper = Paper(tree, recipe, modules)
        text = paper.merged()
        if formatted_length(text, chosen.root) <= LIMIT:
            contents[recipe] = text
            where |= {m: recipe for m in modules}
            renamed |= paper.public
            dead += modules
        else:
            folder, names = paper.package, {"__init__"}
            where[recipe] = f"{folder}/__init__.py"
            moved.append((recipe, f"{folder}/__init__.py"))
            for m in paper.modules:
                parts = m.split("/")
                room = next((ROLE[p] for p in reversed(parts[:-1]) if p in ROLE), "")
                stem = room if room and room not in names else parts[-1].removesuffix(".py")
                names.add(stem)
                where[m] = f"{folder}/{stem}.py"
                moved.append((m, where[m]))
            print("folder:", folder, sorted(names))
    moves = Merged(chosen.root, where, renamed)
    own_tests(moves, by, where, chosen.root)
    for f, text in contents.items(): (tree.package / f).write_text(text)
    for m in dead: subprocess.run(["git", "rm", "-qf", f"strop/{m}"], cwd=chosen.root, check=True)
    rewrite(chosen.root, moves)
    for old, new in [*(("strop/" + o, "strop/" + n) for o, n in moved), *(("tests/" + o, "tests/" + n) for o, n in moves.tests.items() if o != n)]:
        (chosen.root / new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], cwd=chosen.root, check=True)
    codemod.tidy(chosen.root, moves)
    print(len(dead) + len(moved) - sum(1 for o, n in moved if n.endswith("__init__.py")), "modules into", len(by), "recipes;", len(renamed), "names changed:", *sorted(f"{m}.{n} -> {new}" for (m, n), new in renamed.items() if not n.startswith("_")))


def own_tests(moves: Merged, by: dict[str, list[str]], where: dict[str, str], root: Path) -> None:
    """A test of a module that went into a paper goes beside the paper's: test_KEY.py, or test_KEY_MODULE.py."""
    taken = set(moves.tests.values())
    for test in list(moves.tests):
        folder, _, name = test.rpartition("/")
        if not name.startswith("test_"): continue
        module = f"{folder}/{name[5:]}"
        if module in where and module not in by:
            recipe = next(r for r, ms in by.items() if module in ms)
            _, group, key = recipe.removesuffix(".py").split("/")
            plain = f"recipes/{group}/test_{key}.py"
            stem = name[5:-3]
            new = plain if plain not in taken else f"recipes/{group}/test_{key}_{stem}.py" if stem != key else f"recipes/{group}/test_{key}_parts.py"
            assert new not in taken, new
            taken.add(new)
            moves.tests[test] = new


def formatted_length(text: str, root: Path) -> int:
    out = subprocess.run([root / ".venv/bin/ruff", "check", "--select", "I,F401", "--fix", "-q", "--config", str(root / "pyproject.toml"), "--stdin-filename", "x.py", "-"], input=text, text=True, capture_output=True).stdout
    out = subprocess.run([root / ".venv/bin/ruff", "format", "-q", "--config", str(root / "pyproject.toml"), "--stdin-filename", "x.py", "-"], input=out or text, text=True, capture_output=True).stdout
    return (out or text).count("\n")


def rewrite(root: Path, moves: Merged) -> None:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, text=True, capture_output=True, check=True).stdout.split("\n")
    for name in sorted(set(filter(None, listed))):
        path = root / name
        if not path.is_file() or path.is_symlink() or name in ("CHANGELOG.md", "LICENSE", "CITATION.cff", "tests/oracle.json") or name.startswith(("docs/rooms/", "docs/papers/", "strop/pocket/model/")):
            continue
        if path.suffix not in codemod.TEXT | {".py"} or path.stat().st_size > 3_000_000 or "results" in Path(name).parts: continue
        try: text = path.read_text()
        except UnicodeDecodeError: continue
        if path.suffix == ".py": new = codemod.at_new_depth(Source(text, moves, name).rewritten(), name, moves)
        elif path.suffix == ".md": new = codemod.rewrite_markdown(text, moves)
        else: new = moves.text(text)
        if new != text: path.write_text(new)


if __name__ == "__main__":
    main()
