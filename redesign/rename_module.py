"""rename_module.py OLD NEW [OLD NEW ...]: moves modules (paths under strop/) and rewrites every reference."""
import subprocess, sys, tempfile
from pathlib import Path
root = Path(__file__).parent.parent
rows = "stage\told\tnew\taction\twhy\n" + "".join(f"X\t{a}\t{b}\tmove\t\n" for a, b in zip(sys.argv[1::2], sys.argv[2::2]))
with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
    table.write(rows); table.flush()
    subprocess.run(["/tmp/redesign-venv/bin/python", root / "redesign/codemod.py", "--root", root, "--table", table.name, "--stage", "X"], check=True)
ruff = root / ".venv/bin/ruff"
subprocess.run([ruff, "check", "-q", "--select", "I", "--fix", "strop", "tests", "effects", "benchmarks"], cwd=root)
subprocess.run([ruff, "format", "-q", "strop", "tests", "effects", "benchmarks"], cwd=root)
