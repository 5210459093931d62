"""Which modules belong to one paper's recipe: all that import them (when running) are that recipe or belong to it."""
from __future__ import annotations
import ast, re, sys
from collections import defaultdict
from pathlib import Path

STAY = ("environments/bundled", "environments/data", "environments/judging", "environments/wrappers", "environments/external", "environments/isolation", "environments/multi_agent", "environments/format",
        "control/admission", "generate/engines", "generate/llm_clients", "generate/serve", "generate/memory", "standins", "stats", "text", "observe/health", "observe/dashboard", "observe/report/write_report", "observe/metrics/step_metrics",
        "observe/live", "observe/run_files", "training/machine", "replay/memory")
STAGES = ("control", "filter", "generate", "environments", "replay", "training", "observe")
CLASSIC = ("classics", "studies")


def rel(path: Path, package: Path) -> str:
    return str(path.relative_to(package))


class Tree:
    def __init__(self, root: Path):
        self.package = root / "strop"
        self.files = {rel(p, self.package): ast.parse(p.read_text()) for p in sorted(self.package.rglob("*.py"))}
        self.module_of = {self.dotted(f): f for f in self.files}
        self.imports = {f: self.imported(f, t) for f, t in self.files.items()}
        self.users: dict[str, set[str]] = defaultdict(set)
        for f, found in self.imports.items():
            for g in found:
                self.users[g].add(f)

    @staticmethod
    def dotted(f: str) -> str:
        return "strop." + f.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".") if f != "__init__.py" else "strop"

    def imported(self, f: str, tree: ast.Module) -> set[str]:
        found = set()
        typing = {id(n) for b in ast.walk(tree) if isinstance(b, ast.If) and "TYPE_CHECKING" in ast.unparse(b.test) for n in ast.walk(b)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("strop"):
                for a in node.names:
                    for name in (f"{node.module}.{a.name}", node.module):
                        if name in self.module_of:
                            found.add(self.module_of[name]); break
            elif isinstance(node, ast.Import):
                found |= {self.module_of[a.name] for a in node.names if a.name in self.module_of}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                for m in re.findall(r"^strop(?:\.\w+)+(?=$|:)", node.value):
                    if m in self.module_of and " " not in node.value:
                        found.add(self.module_of[m])
        # imports for types alone count too: they would point from a room into a paper
        return found - {f}

    def is_recipe(self, f: str) -> bool:
        parts = f.split("/")
        return parts[0] == "recipes" and len(parts) >= 3 and parts[-1] != "__init__.py"

    def stays(self, f: str) -> str:
        if f.endswith("__init__.py") or f.split("/")[0] not in STAGES:
            return "no stage"
        if f.startswith(STAY) or "/support/" in f:
            return "stays in its room"
        text = ast.unparse(self.files[f])
        if "__file__" in text or "__name__" in text:
            return "knows its own place"
        for node in self.files[f].body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(b).split("[")[0] in ("Reward",) for b in node.bases):
                said = next((s for s in node.body if isinstance(s, ast.AnnAssign) and ast.unparse(s.target) == "is_inline"), None)
                if said is None or ast.unparse(said.value or ast.Constant(None)) != "True":
                    return "computed in a process of its own"
        return ""

    def owners(self) -> dict[str, str]:
        """Greatest fixpoint: every candidate belongs to somebody until an importer says otherwise."""
        reach: dict[str, set[str]] = {f: set() for f in self.files}
        stays = {f: self.stays(f) for f in self.files}
        changed = True
        owner: dict[str, str | None] = {}
        def of(f, seen=()):
            if f in owner: return owner[f]
            if self.is_recipe(f): return f
            if stays[f] or f in seen: return None
            return None
        # from the recipes down, in topological order of users
        order, done = [], set()
        def visit(f):
            if f in done: return
            done.add(f)
            for u in sorted(self.users[f]): visit(u)
            order.append(f)
        for f in self.files: visit(f)
        for f in order:
            if self.is_recipe(f) or stays[f] or not self.users[f]: continue
            found = {of(u) for u in self.users[f]}
            if len(found) == 1 and None not in found:
                owner[f] = found.pop()
        return {f: o for f, o in owner.items() if o and o.split("/")[1] not in CLASSIC}


if __name__ == "__main__":
    tree = Tree(Path(sys.argv[1]))
    owners = tree.owners()
    by = defaultdict(list)
    for f, o in owners.items(): by[o].append(f)
    n = lambda f: (tree.package / f).read_text().count("\n")
    sizes = {o: n(o) + sum(n(f) - 6 for f in fs) for o, fs in by.items()}
    print(len(owners), "modules of", len(by), "recipes;", sum(s > 300 for s in sizes.values()), "folders:", [o for o, s in sizes.items() if s > 300])
    print("files", len(tree.files), "-> ", len(tree.files) - len(owners))
    why = defaultdict(int)
    for f in tree.files:
        us = tree.users[f]
        if f not in owners and us and all(tree.is_recipe(u) for u in us) and len(us) == 1:
            why[tree.stays(f) or "classic/" + next(iter(us)).split("/")[1]] += 1
            if tree.stays(f) == "computed in a process of its own": print("  process:", f)
    print(dict(why))
