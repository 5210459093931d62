"""Renames words within identifiers, strings, comments, docs and file names, all at once, so that nothing collides.

    python words.py --root CHECKOUT [--dry-run]

Rows of words.tsv: kind (word: a part of identifiers and a word of prose; ident: a whole identifier; prose: a word of
prose alone), old, new (as an identifier), prose (as prose; "" like new; "-" not in prose), only (prefixes of paths), not_in.
"""
from __future__ import annotations
import argparse, ast, csv, io, re, subprocess, sys, tokenize
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from codemod import SKIP, TEXT

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|_+")
CONSONANT = "rollout|completion|policy|task generator|sandbox|metric|prediction|probability|training|score|warning|comparison|prefix|shared|fast|gate|health|batch"
VOWEL = "environment|env|estimator|admission|episode|LLM client|advantage"
ARTICLES = [(re.compile(rf"\b([Aa])n (`?(?:{CONSONANT})\b)"), r"\1 \2"), (re.compile(rf"\b([Aa]) (`?(?:{VOWEL})s?\b)"), r"\1n \2")]
FORMATTED, BRACES = re.compile(r"[rR]?[fF][rR]?['\"]"), re.compile(r"(?<!\{)\{(?!\{)[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
SQL = re.compile(r"\b(SELECT|CREATE|INSERT|UPDATE|COALESCE|json_extract|JOIN|WHERE|COUNT\()")


class Words:
    def __init__(self, rows, phrases, protect):
        self.rows, self.phrases = rows, [(re.compile(a), b) for a, b in phrases]
        self.protect = re.compile("|".join(f"(?:{p})" for p in protect), re.M) if protect else None

    def for_file(self, name: str):
        words, idents, prose = {}, {}, {}
        for r in self.rows:
            only, out = [x for x in (r["only"] or "").split(",") if x], [x for x in (r["not_in"] or "").split(",") if x]
            if only and not any(name.startswith(x) for x in only): continue
            if any(name.startswith(x) for x in out): continue
            if r["kind"] == "ident": idents[r["old"]] = r["new"]
            elif r["kind"] == "prose": prose[r["old"]] = r["prose"] or r["new"]
            else:
                words[r["old"]] = r["new"]
                if (r["prose"] or "") != "-": prose[r["old"]] = r["prose"] or pretty(r["new"])
        return words, idents, prose

    def ident(self, text: str, mine) -> str:
        words, idents, _ = mine
        if text in idents: return idents[text]
        parts = PART.findall(text)
        if "".join(parts) != text: return text
        made = []
        for p in parts:
            new = words.get(p.lower())
            if new is None: made.append(p)
            elif p.isupper() and len(p) > 1: made.append(LONG.get(new, new).upper() if len([q for q in parts if q != "_"]) == 0 else new.upper())
            elif p[0].isupper(): made.append("".join("LLM" if w == "llm" else w.capitalize() for w in LONG.get(new, new).split("_")))
            else: made.append(new)
        return "".join(made)

    def plain(self, text: str, mine) -> str:
        prose = mine[2]
        new = prose.get(text.lower())
        if new is None: return self.ident(text, mine) if "_" in text or (text[1:] != text[1:].lower()) else text
        if text.isupper() and len(text) > 1: return new.upper()
        return new[0].upper() + new[1:] if text[0].isupper() else new

    def prose(self, text: str, mine) -> str:
        if SQL.search(text):
            return NAME.sub(lambda m: self.ident(m[0], mine), text)
        for pattern, new in self.phrases: text = pattern.sub(new, text)
        kept: list[str] = []
        if self.protect:
            text = self.protect.sub(lambda m: (kept.append(m[0]), f"\x00{len(kept) - 1}\x00")[1], text)
        is_plain = " " in text.strip()
        def one(m):
            before, after = text[m.start() - 1 : m.start()], text[m.end() : m.end() + 1]
            code = not is_plain or before in ("`", ".", "'", '"', "/", "(", "=", "{", "[", "$", "-", "_") and before or after in ("=", "(", "/", "_", "`", "]", "}") or (after == "." and text[m.end() + 1 : m.end() + 2].isalnum())
            if before == "-" and text[m.start() - 2 : m.start() - 1].isalpha(): code = False
            if before == "(" and after not in ("=", ",", ")", "(") : code = False
            if before == "." and not text[m.start() - 2 : m.start() - 1].isalnum() : code = False
            if before in ("'", '"') and after not in ("'", '"', "/", "=", "_", ".", "{"): code = False
            return (self.ident if code else self.plain)(m[0], mine)
        text = NAME.sub(one, text)
        for pattern, new in ARTICLES: text = pattern.sub(new, text)
        return re.sub("\x00(\\d+)\x00", lambda m: kept[int(m[1])], text)

    def formatted(self, text: str, mine) -> str:
        """An f-string: what stands in braces is code."""
        kept: list[str] = []
        def keep(m):
            kept.append(NAME.sub(lambda n: self.ident(n[0], mine), m[0]))
            return f"\x01{len(kept) - 1}\x01"
        text = self.prose(BRACES.sub(keep, text), mine)
        return re.sub("\x01(\\d+)\x01", lambda m: kept[int(m[1])], text)

    def python(self, text: str, mine) -> str:
        lines, edits = text.splitlines(keepends=True), []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                new = self.ident(token.string, mine) if not (self.protect and self.protect.fullmatch(token.string)) else token.string
            elif token.type in (tokenize.STRING, tokenize.COMMENT): new = self.formatted(token.string, mine) if FORMATTED.match(token.string) else self.prose(token.string, mine)
            else: continue
            if new != token.string: edits.append((token.start, token.end, new))
        for (l1, c1), (l2, c2), new in reversed(edits):
            first, last = lines[l1 - 1], lines[l2 - 1]
            lines[l1 - 1 : l2] = [first[:c1] + new + last[c2:]]
        return "".join(lines)


LONG = {"env": "environment", "envs": "environments"}  # in names of classes


def pretty(new: str) -> str:
    return new.replace("_", " ").replace("llm", "LLM").replace("pass rate", "pass-rate")


def collisions(old: str, new: str) -> list[str]:
    """Names of one scope, or members of one class, that were two and are one now."""
    a, b, said = scopes(ast.parse(old)), scopes(ast.parse(new)), []
    for (where, before), (_, after) in zip(a, b):
        back = defaultdict(set)
        for x, y in zip(before, after): back[y].add(x)
        said += [f"{where}: {sorted(v)} -> {k}" for k, v in back.items() if len(v) > 1]
    return said


def scopes(tree):
    found = []
    def names(node, out):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                out.append(child.name)
                scope(child)
                for d in child.decorator_list: names(d, out)
                continue
            if isinstance(child, ast.Name): out.append(child.id)
            elif isinstance(child, ast.arg): out.append(child.arg)
            elif isinstance(child, ast.alias): out.append((child.asname or child.name).split(".")[0])
            names(child, out)
    def scope(node):
        out = []
        found.append((f"{getattr(node, 'name', 'module')}:{getattr(node, 'lineno', 0)}", out))
        names(node, out)
    scope(tree)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--table", default="words.tsv")
    chosen = parser.parse_args()
    here = Path(__file__).parent
    rows = [r for r in csv.DictReader((l for l in (here / chosen.table).open() if not l.startswith("#")), delimiter="\t")]
    read = lambda n: [l for l in (here / n).read_text().splitlines() if l.strip() and not l.startswith("#")] if (here / n).is_file() else []
    words = Words(rows, [tuple(l.split("\t")) for l in read("phrases.tsv")], read("protect.txt"))
    listed = subprocess.run(["git", "ls-files"], cwd=chosen.root, text=True, capture_output=True, check=True).stdout.split("\n")
    found: dict[str, list[str]] = {}
    for name in sorted(set(filter(None, listed))):
        path = chosen.root / name
        if not path.is_file() or path.is_symlink() or name in ("CHANGELOG.md", "LICENSE", "CITATION.cff", "tests/oracle.json") or name.startswith(("docs/rooms/", "docs/papers", "strop/pocket/model/", "tests/recipes/parts/", "docs/images", "redesign/")): continue
        if path.suffix not in TEXT | {".py"} or path.suffix in (".c", ".h", ".txt") or path.stat().st_size > 3_000_000 or "results" in Path(name).parts: continue
        try: text = path.read_text()
        except UnicodeDecodeError: continue
        mine = words.for_file(name)
        if path.suffix == ".py":
            new = words.python(text, mine)
            try: ast.parse(new)
            except SyntaxError as e: print("BROKEN", name, e); continue
            if hit := collisions(text, new): found[name] = hit
        elif path.suffix == ".md": new = "\n".join(words.prose(l, mine) for l in text.split("\n"))
        else: new = "\n".join(words.prose(l, mine) for l in text.split("\n"))
        if new != text and not chosen.dry_run: path.write_text(new)
    for name, hit in found.items(): print("collision", name, "; ".join(hit))
    if chosen.dry_run: return
    for name in sorted(listed, key=len, reverse=True):  # file names follow
        if not name.startswith(("strop/", "tests/", "docs/")) or not (chosen.root / name).is_file() or name.startswith(("docs/papers/", "docs/rooms/", "strop/pocket/model", "docs/images")): continue
        if words.protect and words.protect.search(name): continue
        mine = words.for_file(name)
        folder, _, base = name.rpartition("/")
        stem, dot, ending = base.partition(".")
        new = "-".join(words.ident(piece, mine) for piece in stem.split("-")) + dot + ending
        if new != base:
            if (chosen.root / folder / new).exists(): print("FILE EXISTS", name, new); continue
            subprocess.run(["git", "mv", name, f"{folder}/{new}"], cwd=chosen.root, check=True)
            print("file", name, "->", new)


if __name__ == "__main__":
    main()
