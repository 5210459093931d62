"""Renames words within identifiers, strings, comments, docs and file names, all at once, so that nothing collides on the way.

    python words.py --root CHECKOUT --table words.tsv [--groups 1,2]

A word is a part of an identifier (`belief_of`, `PerVoice`, `_MOST_ATTEMPTS`). In prose a name of several words is
written with spaces. Phrases that must stay are taken out first (protect.txt: one regular expression per line).
"""
from __future__ import annotations
import argparse, ast, csv, io, re, subprocess, sys, tokenize
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from codemod import SKIP, TEXT

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|_+")
ARTICLES = [(re.compile(r"\b([Aa])n (rollout|completion|policy name|task generator|sandbox|metric|prediction|probability)"), r"\1 \2"),
            (re.compile(r"\b([Aa]) (environment|estimator|admission|episode|LLM client|advantage)"), r"\1n \2")]


class Words:
    def __init__(self, rows: list[dict], phrases: list[tuple[str, str]], protect: list[str]):
        self.rows = {r["old"]: r for r in rows}
        self.phrases = [(re.compile(a), b) for a, b in phrases]
        self.protect = re.compile("|".join(f"(?:{p})" for p in protect), re.M) if protect else None

    def for_file(self, name: str) -> dict[str, str]:
        return {old: r["new"] for old, r in self.rows.items() if not any(name.startswith(x) for x in filter(None, r["not_in"].split(",")))}

    def word(self, text: str, words: dict[str, str], prose: bool) -> str:
        parts = PART.findall(text)
        if "".join(parts) != text: return text
        alone, made = len(parts) == 1, []
        for p in parts:
            new = words.get(p.lower())
            if new is None: made.append(p)
            elif p.isupper() and len(p) > 1: made.append(new.upper())
            elif p[0].isupper():
                if prose and alone: made.append(pretty(new)[0].upper() + pretty(new)[1:])
                else: made.append("".join("LLM" if w == "llm" else w.capitalize() for w in new.split("_")))
            else: made.append(pretty(new) if prose and alone else new)
        return "".join(made)

    def prose(self, text: str, words: dict[str, str]) -> str:
        """A string, a comment or a page: code in backticks, and what holds no blank, are identifiers."""
        for pattern, new in self.phrases: text = pattern.sub(new, text)
        kept: list[str] = []
        if self.protect:
            text = self.protect.sub(lambda m: (kept.append(m[0]), f"\x00{len(kept) - 1}\x00")[1], text)
        is_plain = " " in text.strip()
        def one(m: re.Match) -> str:
            before, after = text[m.start() - 1 : m.start()], text[m.end() : m.end() + 1]
            code = not is_plain or before in ("`", ".", "'", '"', "/", "(", "=", "{", "[", "$", "-") and before or after in ("=", "(", "/", "_", "`", "]", "}") or (after == "." and text[m.end() + 1 : m.end() + 2].isalnum())
            if before == "(" and after not in ("=", ",", ")", "(") : code = False
            if before in ("'", '"') and after not in ("'", '"'): code = False
            return self.word(m[0], words, not code)
        text = NAME.sub(one, text)
        for pattern, new in ARTICLES: text = pattern.sub(new, text)
        return re.sub("\x00(\\d+)\x00", lambda m: kept[int(m[1])], text)

    def python(self, text: str, words: dict[str, str]) -> str:
        lines = text.splitlines(keepends=True)
        edits = []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                new = self.word(token.string, words, False) if not (self.protect and self.protect.fullmatch(token.string)) else token.string
            elif token.type in (tokenize.STRING, tokenize.COMMENT):
                new = self.prose(token.string, words)
            else: continue
            if new != token.string: edits.append((token.start, token.end, new))
        for (l1, c1), (l2, c2), new in reversed(edits):
            first, last = lines[l1 - 1], lines[l2 - 1]
            lines[l1 - 1 : l2] = [first[:c1] + new + last[c2:]]
        return "".join(lines)


def pretty(new: str) -> str:
    return new.replace("_", " ").replace("llm", "LLM").replace("pass rate", "pass-rate")


def collisions(old: str, new: str) -> list[str]:
    """Names of a file that were two and are one now: looked at by scopes, as a parameter and a method may share a name."""
    a = [t.string for t in tokenize.generate_tokens(io.StringIO(old).readline) if t.type == tokenize.NAME]
    b = [t.string for t in tokenize.generate_tokens(io.StringIO(new).readline) if t.type == tokenize.NAME]
    if len(a) != len(b): return ["token counts differ"]
    back = defaultdict(set)
    for x, y in zip(a, b): back[y].add(x)
    return [f"{sorted(v)} -> {k}" for k, v in back.items() if len(v) > 1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--groups", default="")
    parser.add_argument("--dry-run", action="store_true")
    chosen = parser.parse_args()
    groups = set(filter(None, chosen.groups.split(",")))
    rows = [r for r in csv.DictReader((l for l in chosen.table.open() if not l.startswith("#")), delimiter="\t") if not groups or r["group"] in groups]
    here = Path(__file__).parent
    read = lambda n: [l for l in (here / n).read_text().splitlines() if l.strip() and not l.startswith("#")] if (here / n).is_file() else []
    words = Words(rows, [tuple(l.split("\t")) for l in read("phrases.tsv")], read("protect.txt"))
    listed = subprocess.run(["git", "ls-files"], cwd=chosen.root, text=True, capture_output=True, check=True).stdout.split("\n")
    found: dict[str, list[str]] = {}
    for name in sorted(set(filter(None, listed))):
        path = chosen.root / name
        if not path.is_file() or path.is_symlink() or name in ("CHANGELOG.md", "LICENSE", "CITATION.cff", "tests/oracle.json") or name.startswith(("docs/rooms/", "docs/papers", "strop/pocket/model/", "tests/recipes/parts/", "docs/images")): continue
        if path.suffix not in TEXT | {".py"} or path.suffix in (".c", ".h", ".txt", ".css") or path.stat().st_size > 3_000_000 or "results" in Path(name).parts: continue
        try: text = path.read_text()
        except UnicodeDecodeError: continue
        mine = words.for_file(name)
        if path.suffix == ".py":
            new = words.python(text, mine)
            try: ast.parse(new)
            except SyntaxError as e: print("BROKEN", name, e); continue
            if hit := collisions(text, new): found[name] = hit
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
        new = "-".join(words.word(piece, mine, False) for piece in stem.split("-")) + dot + ending
        if new != base:
            assert not (chosen.root / folder / new).exists(), (name, new)
            subprocess.run(["git", "mv", name, f"{folder}/{new}"], cwd=chosen.root, check=True)


if __name__ == "__main__":
    main()
