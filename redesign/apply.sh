#!/bin/bash
# apply.sh STAGE [ROOT]: one stage of the redesign in a clean checkout (ROOT, default: here) whose .venv has ruff.
set -e
stage=$1; root=$(realpath "${2:-.}"); tools=$(dirname "$(realpath "$0")")
venv=${TMPDIR:-/tmp}/redesign-venv; py=$venv/bin/python; [ -x "$py" ] || { python3 -m venv "$venv"; "$venv/bin/pip" install -q libcst; }
cd "$root"
[ -z "$(git status --porcelain)" ] || { echo "the checkout is not clean"; exit 1; }
[ -z "${REVIEW-}" ] || python3 "$tools/make_moves.py" > /dev/null
case $stage in
  A) $py "$tools/codemod.py" --root "$root" --table "$tools/moves.tsv" --stage A ;;
  B) $py "$tools/inline.py" --root "$root" ;;
  C) $py "$tools/words.py" --root "$root" --table "$tools/words.tsv" ;;
esac
tidy() { [ $stage = B ] && .venv/bin/ruff check -q --select F401 --fix strop || true; .venv/bin/ruff check -q --select I --fix . || true; .venv/bin/ruff format -q .; }
tidy
python3 "$tools/wrap.py" "$root"
[ -f "$tools/patch_$stage.py" ] && python3 "$tools/patch_$stage.py" "$root"
tidy
python3 "$tools/wrap.py" "$root"
.venv/bin/ruff format -q . ; .venv/bin/ruff check -q --output-format concise . || true
export OMP_NUM_THREADS=1
[ -n "$FAST" ] || .venv/bin/python -m strop.catalogue > /dev/null || true
[ -n "$FAST" ] || .venv/bin/python -m tests.test_defaults > /dev/null || echo "test_defaults could not be renewed"
[ -n "$FAST" ] || .venv/bin/python -m tests.recipes.test_parts > /dev/null || echo "parts could not be renewed"
.venv/bin/python -m pytest -q -p no:cacheprovider tests/test_imports.py tests/test_shape.py 2>&1 | tail -15
git add -A; git status --short | wc -l
