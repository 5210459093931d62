"""Moves modules of strop and rewrites every reference: imports, dotted names and paths in strings, docs and tables.

    python codemod.py --root CHECKOUT --table moves.tsv --stage A [--dry-run]

Rows: `move` (a file), `folder` (what else lies below a folder goes along). Nothing else is changed in a file.
"""
from __future__ import annotations
import argparse, ast, csv, io, re, subprocess, sys, tokenize
from collections import defaultdict
from pathlib import Path
import time


def git(*words, cwd):
    for _ in range(60):
        done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True)
        if done.returncode == 0 or "index.lock" not in done.stderr: break
        time.sleep(0.3)
    if done.returncode: print("GIT", words, done.stderr[-200:])


SKIP = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "site", "build", ".triton"}
TEXT = {".md", ".toml", ".yml", ".json", ".txt", ".cfg", ".html", ".c", ".h", ".css", ".js", ""}


TEST_HELPERS = {"models.py": "tiny_models.py"}  # tests/models/ is the mirror of strop/models/ now


class Moves:
    """Old to new paths, relative to strop/, of every file there is."""

    def __init__(self, root: Path, rows: list[dict]):
        self.root = root
        files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "strop", "tests"], cwd=root, text=True, capture_output=True, check=True).stdout.split("\n")
        self.files = sorted(f for f in files if f and (root / f).exists())
        moved = {r["old"]: r["new"] for r in rows if r["action"] == "move"}
        self.folders = sorted(((r["old"], r["new"]) for r in rows if r["action"] == "folder"), key=lambda x: -len(x[0]))
        self.paths: dict[str, str] = {}
        for f in self.files:
            if f.startswith("strop/"):
                rel = f.removeprefix("strop/")
                self.paths[rel] = moved.get(rel) or self.in_folder(rel)
        self.modules = {dotted(o): dotted(n) for o, n in self.paths.items() if o.endswith(".py") and not o.endswith("__init__.py")}
        self.packages = {}
        for rel in self.paths:
            for parent in list(Path(rel).parents)[:-1]:
                self.packages[str(parent).replace("/", ".")] = self.in_folder(str(parent) + "/x").removesuffix("/x").replace("/", ".")
        self.tests = self.test_moves()

    def in_folder(self, rel: str) -> str:
        for old, new in self.folders:
            if rel.startswith(old + "/"):
                return new + rel[len(old):]
        return rel

    def test_moves(self) -> dict[str, str]:
        """Tests mirror the package where they did."""
        found = {}
        for f in self.files:
            if not f.startswith("tests/"):
                continue
            rel = f.removeprefix("tests/")
            folder, name = rel.rsplit("/", 1) if "/" in rel else ("", rel)
            target = None
            if name.startswith("test_") and name.endswith(".py"):
                module = f"{folder}/{name[5:]}" if folder else name[5:]
                if module in self.paths:
                    new = self.paths[module]
                    nf, nn = new.rsplit("/", 1) if "/" in new else ("", new)
                    target = f"{nf}/test_{nn}" if nf else f"test_{nn}"
                elif (hit := [m for m in self.paths if m.rsplit("/", 1)[-1] == name[5:] and m.startswith((folder + "/") if folder else "")]) and len(hit) == 1:
                    new = self.paths[hit[0]]
                    nf, nn = new.rsplit("/", 1) if "/" in new else ("", new)
                    if hit[0] != new:
                        target = f"{nf}/test_{nn}" if nf else f"test_{nn}"
            if target is None:
                target = TEST_HELPERS.get(rel) or self.in_folder(rel)
                if name == "__init__.py" and folder:
                    target = self.in_folder(rel)
            found[rel] = target
        back = defaultdict(list)
        for o, n in found.items():
            back[n].append(o)
        for n, olds in back.items():  # two tests of one module: the second keeps its name
            if len(olds) > 1:
                for o in olds[1:]:
                    found[o] = str(Path(n).parent / Path(o).name)
        return found

    # ---- names

    def dotted(self, name: str) -> str | None:
        """The new dotted name of `strop.a.b[.attr]`, None if nothing changes."""
        parts = name.split(".")
        for end in range(len(parts), 1, -1):
            inner = ".".join(parts[1:end])
            new = self.modules.get(inner) or self.packages.get(inner)
            if new is not None:
                made = ".".join(["strop", new, *parts[end:]])
                return made if made != name else None
        return None

    def test_dotted(self, name: str) -> str | None:
        parts = name.split(".")
        for end in range(len(parts), 1, -1):
            path = "/".join(parts[1:end]) + ".py"
            if path in self.tests:
                made = ".".join(["tests", dotted(self.tests[path]), *parts[end:]])
                return made if made != name else None
            if any(f.startswith("/".join(parts[1:end]) + "/") for f in self.tests):
                inner = "/".join(parts[1:end])
                new = self.in_folder(inner + "/x").removesuffix("/x")
                made = ".".join(["tests", new.replace("/", "."), *parts[end:]])
                return made if made != name else None
        return None

    DOTTED = re.compile(r"\b(strop|tests)((?:\.[A-Za-z_]\w*)+)")
    PATH = re.compile(r"(?<![\w.:/-])((?:\.\./)*)((?:strop/|tests/)?)((?:\w+/)+)((?:[\w]+)?(?:\.(?:py|txt|c|h|html|json))?)(?![\w])")
    ROOM = re.compile(r"\brooms/([a-z_]+(?:-[a-z_]+)*)(?=\.md)")

    def text(self, text: str, code: bool = False) -> str:
        text = self.DOTTED.sub(lambda m: (self.dotted(m[0]) if m[1] == "strop" else self.test_dotted(m[0])) or m[0], text)
        text = self.ROOM.sub(lambda m: "rooms/" + self.packages.get(m[1].replace("-", "."), m[1].replace("-", ".")).replace(".", "-"), text)
        return self.PATH.sub(self._path, text)

    def _path(self, m: re.Match) -> str:
        ups, top, folder, name = m.groups()
        rel = folder + name
        if top == "tests/":
            if rel in self.tests:
                return ups + top + self.tests[rel]
            if not name and any(t.startswith(folder) for t in self.tests):
                return ups + top + self.in_folder(folder + "x").removesuffix("x")
            return m[0]
        if rel in self.paths:
            return ups + top + self.paths[rel]
        if "." not in name:
            if name and rel + ".py" in self.paths and rel.replace("/", ".") not in self.packages:
                return ups + top + self.paths[rel + ".py"].removesuffix(".py")
            plain = rel.rstrip("/")
            if plain.replace("/", ".") in self.packages:
                return ups + top + self.packages[plain.replace("/", ".")].replace(".", "/") + ("/" if rel.endswith("/") else "")
            if not name and rel.rstrip("/") + ".py" in self.paths:
                return m[0]
        return m[0]


def dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


class Source:
    """One Python file whose imports and strings are rewritten in place."""

    def __init__(self, text: str, moves: Moves, where: str):
        self.moves, self.where = moves, where
        self.lines = text.splitlines(keepends=True)
        self.tree = ast.parse(text)
        self.edits: list[tuple[tuple[int, int], tuple[int, int], str]] = []

    def rewritten(self) -> str:
        imports = [n for n in ast.walk(self.tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        for node in imports:
            self._import(node) if isinstance(node, ast.Import) else self._import_from(node)
        self._strings()
        self.edits.sort(reverse=True)
        lines = self.lines
        for (l1, c1), (l2, c2), new in self.edits:
            first, last = lines[l1 - 1].encode(), lines[l2 - 1].encode()
            lines[l1 - 1 : l2] = [(first[:c1] + new.encode() + last[c2:]).decode()]
        return "".join(lines)

    def _replace(self, node: ast.AST, new: str) -> None:
        self.edits.append(((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), new))

    def _import(self, node: ast.Import) -> None:
        changed = {a: self._new(a.name) for a in node.names}
        if not any(changed.values()):
            return
        parts = []
        for a, new in changed.items():
            name = new or a.name
            parts.append(f"{name} as {a.asname}" if a.asname else name)
            if new and not a.asname:
                self._attributes(a.name, new)
        self._replace(node, f"import {', '.join(parts)}")

    def _new(self, name: str) -> str | None:
        top = name.split(".")[0]
        return self.moves.dotted(name) if top == "strop" else self.moves.test_dotted(name) if top == "tests" else None

    def _attributes(self, old: str, new: str) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == old:
                self._replace(node, new)

    def _import_from(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or node.module.split(".")[0] not in ("strop", "tests"):
            return
        by_module: dict[str, list[str]] = defaultdict(list)
        changed = False
        for a in node.names:
            full = f"{node.module}.{a.name}"
            if self._is_module(full):
                new = self._new(full) or full
                package, _, base = new.rpartition(".")
                as_ = a.asname
                if base != a.name and not as_:
                    as_ = self._renamed(a.name, base)
                by_module[package].append(f"{base} as {as_}" if as_ and as_ != base else base)
                changed |= new != full
            else:
                new = self._new(node.module) or node.module
                by_module[new].append(f"{a.name} as {a.asname}" if a.asname else a.name)
                changed |= new != node.module
        if changed:
            indent = " " * node.col_offset
            texts = [f"from {m} import {', '.join(names)}" if len(names) < 6 else f"from {m} import ({', '.join(names)})" for m, names in by_module.items()]
            self._replace(node, f"\n{indent}".join(texts))

    def _is_module(self, full: str) -> bool:
        top, inner = full.split(".", 1)
        if top == "strop":
            return inner in self.moves.modules or inner in self.moves.packages
        path = inner.replace(".", "/")
        return path + ".py" in self.moves.tests or any(t.startswith(path + "/") for t in self.moves.tests)

    def _renamed(self, old: str, new: str) -> str | None:
        """Usages of an imported module follow its new name where nothing else has that name; else it keeps the old."""
        names = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name)]
        bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {a.arg for a in ast.walk(self.tree) if isinstance(a, ast.arg)}
        bound |= {n.name for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        bound |= {a.asname or a.name for n in ast.walk(self.tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names if a.name != old}
        if old in bound or new in bound or any(n.id == new for n in names):
            return old
        for n in names:
            if n.id == old:
                self._replace(n, new)
        return None

    def _strings(self) -> None:
        text = "".join(self.lines)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                new = self.moves.text(token.string, code=True)
                if new != token.string:
                    (l1, c1), (l2, c2) = token.start, token.end
                    b1 = len(self.lines[l1 - 1][:c1].encode())
                    b2 = len(self.lines[l2 - 1][:c2].encode())
                    self.edits.append(((l1, b1), (l2, b2), new))


MD_FROM = re.compile(r"^(\s*)from ((?:strop|tests)[\w.]*) import ([\w, ]+)$", re.M)


def rewrite_markdown(text: str, moves: Moves) -> str:
    def imports(m: re.Match) -> str:
        try:
            return m[1] + Source(m[0].strip(), moves, "md").rewritten().replace("\n", "\n" + m[1])
        except SyntaxError:
            return m[0]
    return moves.text(MD_FROM.sub(imports, text))


FILE = re.compile(r"Path\(__file__\)((?:\.resolve\(\))?)((?:\.parent\b)+|\.parents\[(\d+)\])")


def at_new_depth(text: str, name: str, moves: Moves) -> str:
    """Paths from a file to the folder of the package or the repository, where the file is now deeper or less deep."""
    top, _, rel = name.partition("/")
    new = {"strop": moves.paths, "tests": moves.tests}.get(top, {}).get(rel, rel)
    dirs, deeper = name.count("/"), new.count("/") - rel.count("/")
    if "__file__" not in text or not deeper:
        return text

    def again(m: re.Match) -> str:
        level = int(m[3]) if m[3] else m[2].count(".parent") - 1
        if level < dirs - 1:
            print("look at", name, "->", new, m[0])
            return m[0]
        return f"Path(__file__){m[1]}" + (f".parents[{level + deeper}]" if m[3] or level + deeper > 1 else ".parent" * (level + deeper + 1))

    return FILE.sub(again, text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--dry-run", action="store_true")
    chosen = parser.parse_args()
    rows = [r for r in csv.DictReader(chosen.table.open(), delimiter="\t") if r["stage"] == chosen.stage]
    moves = Moves(chosen.root, rows)
    missing = [r["old"] for r in rows if r["action"] == "move" and r["old"] not in moves.paths]
    print("rows whose file is not there (any more):", missing or "none")
    clash = defaultdict(list)
    for o, n in moves.paths.items():
        clash[n].append(o)
    bad = {n: o for n, o in clash.items() if len(o) > 1 and not n.endswith("__init__.py")}
    assert not bad, bad
    report_shape(moves)
    if chosen.dry_run:
        return
    # 1. references
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=chosen.root, text=True, capture_output=True, check=True).stdout.split("\n")
    for name in sorted(set(listed)):
        path = chosen.root / name
        if not name or not path.is_file() or path.is_symlink() or any(p in SKIP for p in Path(name).parts):
            continue
        if name in ("CHANGELOG.md", "LICENSE", "CITATION.cff") or name.startswith(("docs/rooms/", "docs/papers/", "strop/pocket/model/")):
            continue
        if path.suffix not in TEXT | {".py"} or path.stat().st_size > 3_000_000:
            continue
        if "results" in Path(name).parts:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if path.suffix == ".py":
            new = at_new_depth(Source(text, moves, name).rewritten(), name, moves)
        elif path.suffix in (".md",):
            new = rewrite_markdown(text, moves)
        else:
            new = moves.text(text)
        if new != text:
            path.write_text(new)
    # 2. files
    table = [("strop/" + o, "strop/" + n) for o, n in moves.paths.items() if o != n]
    table += [("tests/" + o, "tests/" + n) for o, n in moves.tests.items() if o != n]
    temporary = []
    for number, (old, new) in enumerate(table):
        if new.endswith("__init__.py") and (chosen.root / new).exists() and new not in dict(table):
            git("rm", "-qf", old, cwd=chosen.root)
            continue
        # in two steps, as one file's new name may be another's old one
        (chosen.root / ".moving").mkdir(exist_ok=True)
        git("add", old, cwd=chosen.root)
        git("mv", old, f".moving/{number}", cwd=chosen.root)
        temporary.append((number, new))
    for number, new in temporary:
        (chosen.root / new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", f".moving/{number}", new, cwd=chosen.root)
    # 3. packages
    tidy(chosen.root, moves)


def report_shape(moves: Moves) -> None:
    loose, names = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for new in moves.paths.values():
        parts = new.split("/")
        if new.endswith(".py") and parts[-1] != "__init__.py":
            stage = parts[0] if len(parts) > 1 else "(top)"
            if len(parts) <= 2:
                loose[stage].append(parts[-1])
            if stage not in ("recipes", "kernels"):
                names[stage][parts[-1]].append(new)
    print("loose:", {k: len(v) for k, v in loose.items() if len(v) > 12})
    print("one name twice in a stage:", [v for s in names.values() for v in s.values() if len(v) > 1])


def tidy(root: Path, moves: Moves) -> None:
    """Every folder with modules is a package; folders without any are gone."""
    docs = {}
    for line in (Path(__file__).parent / "rooms.tsv").read_text().splitlines():
        if line.strip():
            folder, doc = line.split("\t")
            docs[folder] = doc
    for top in ("strop", "tests"):
        for folder in sorted({p.parent for p in (root / top).rglob("*.py")} | {p.parent.parent for p in (root / top).rglob("*/*.py")}):
            rel = str(folder.relative_to(root / top))
            if any(p in SKIP for p in folder.parts):
                continue
            is_scripts = rel.endswith(("example_clients", "serve/programs"))
            if not (folder / "__init__.py").exists() and not is_scripts:
                (folder / "__init__.py").write_text(f'"""{docs[rel]}"""\n' if top == "strop" else "")
                if top == "strop" and rel not in docs:
                    print("no docstring for", rel)
    for top in ("strop", "tests"):
        for folder in sorted((p for p in (root / top).rglob("*") if p.is_dir() and "__pycache__" not in p.parts), key=lambda p: -len(p.parts)):
            inside = [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
            if inside == [folder / "__init__.py"] or not inside:
                if inside:
                    git("rm", "-qf", str(folder / "__init__.py"), cwd=root)
                    (folder / "__init__.py").unlink(missing_ok=True)
                subprocess.run(["rm", "-rf", str(folder)], check=True)


if __name__ == "__main__":
    main()
