"""Breaks lines over 120 characters in docstrings and comments, as the codemod made some names longer."""
import json, re, subprocess, sys
from pathlib import Path
root = Path(sys.argv[1])
out = subprocess.run([root / ".venv/bin/ruff", "check", "--select", "E501", "--output-format", "json", "."], cwd=root, text=True, capture_output=True).stdout
found: dict[str, list[int]] = {}
for each in json.loads(out):
    found.setdefault(each["filename"], []).append(each["location"]["row"])
for name, rows in found.items():
    lines = Path(name).read_text().split("\n")
    for row in sorted(rows, reverse=True):
        line = lines[row - 1]
        indent = line[: len(line) - len(line.lstrip())]
        body = line.strip()
        is_comment = body.startswith("#")
        is_doc = not is_comment and (body.startswith('"""') or not any(c in body for c in ('"', "'")) or "`" in body)
        if body.count('"') and not body.startswith('"""') and not is_comment or "= " in body and '"' in body:
            print("by hand:", name, row); continue
        if not is_doc and not is_comment:
            print("by hand:", name, row); continue
        cut = line.rfind(" ", 0, 121)
        first, rest = line[:cut], line[cut + 1:]
        if body.startswith('"""') and body.endswith('"""') and len(body) > 6:
            rest = rest[:-3]
            lines[row - 1: row] = [first, indent + rest, indent + '"""']
        else:
            lead = indent + ("# " if is_comment else "")
            following = lines[row] if row < len(lines) else ""
            # the words that no longer fit go in front of the next line of the same paragraph, where there is one
            if following.strip() and following.startswith(indent) and not following.strip().startswith(('"""', "-", "#")) and not is_comment and len(indent + rest + " " + following.strip()) <= 120:
                lines[row - 1: row + 1] = [first, indent + rest + " " + following.strip()]
            else:
                lines[row - 1: row] = [first, lead + rest]
    Path(name).write_text("\n".join(lines))
