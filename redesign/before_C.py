"""What stage C needs before words are renamed: names whose meaning depends on where they stand."""
import re, subprocess, sys
from pathlib import Path
ROOT = Path(sys.argv[1])
files = [ROOT / f for f in subprocess.run(["git", "ls-files", "strop", "tests", "benchmarks", "effects", "docs"], cwd=ROOT, capture_output=True, text=True).stdout.split() if f.endswith((".py", ".md"))]
def sub(paths, *pairs):
    for p in paths:
        if not p.is_file(): print("no file", p); continue
        t = old = p.read_text()
        for a, b in pairs: t = re.sub(a, b, t)
        if t != old: p.write_text(t)
def f(*names): return [ROOT / n for n in names]
def having(pattern, under=("",)): return [p for p in files if p.suffix == ".py" and any(str(p.relative_to(ROOT)).startswith(u) for u in under) and re.search(pattern, p.read_text())]

# prefixes of completions
show = f("strop/cli/commands/show.py", "strop/observe/report/rollout_page.py", "strop/observe/report/transcripts.py", "tests/observe/dashboard/test_attempts.py", "tests/observe/report/test_write_report.py")
sub(f("strop/cli/commands/show.py", "strop/observe/report/rollout_page.py"), (r"\bline\.given\b", "line.prefix"))
sub(f("tests/observe/dashboard/test_attempts.py"), (r'given="x="', 'prefix="x="'))
sub(f("tests/observe/report/test_write_report.py"), (r"reply\.given\b", "reply.prefix"), (r"\bgiven=len\(given\)", "num_prefix=len(given)"))
t = (ROOT / "strop/observe/report/transcripts.py").read_text()
sub(f("strop/observe/report/transcripts.py"), (r"turn\.given\b", "turn.num_prefix"), (r"\bgiven\b(?=:| =|\)|,)", "prefix"))
users = having(r"from strop\.generate\.turn_ops import [^\n]*\bgiven\b|def given\(turns")
sub(users, (r"\bgiven\((?=[^)])", "as_prefix("), (r"(import [^\n]*)\bgiven\b", r"\1as_prefix"))
code = [p for p in files if p.suffix == ".py"]
sub(code, (r"(?<!line)(?<!reply)(?<=[\w\])])\.given\b", ".num_prefix"))
sub(f("strop/types.py"), (r"\bgiven: int = 0", "num_prefix: int = 0"), (r"`given` tokens", "`num_prefix` tokens"), (r"def begun\(self\)", "def prefix(self)"), (r"self\.begun\b", "self.prefix"), (r"\bbegun: int = 0", "num_prefix: int = 0"), (r"\[given\]", "[num_prefix]"))
sub(f("strop/generate/conversation.py", "strop/generate/turn_ops.py", "tests/recipes/rollout/test_v_star.py", "tests/training/advantages/test_along_tree.py"), (r"\bgiven=", "num_prefix="))
sub(f("tests/filter/test_span_rewards.py"), (r"\bgiven\b", "num_prefix"))
sub(code, (r"(sampling|each for each in engine\.asked\] == |asked)\.begun\b", r"\1.num_prefix"), (r"\[each\.begun for each in engine\.asked\]", "[each.num_prefix for each in engine.asked]"),
    (r"(turns?(?:\[[-\w]+\])?|rest|second|begun|turns\[0\])\.begun\b", r"\1.prefix"))
sub(f("strop/generate/conversation.py", "strop/generate/engines/wrappers/chunked.py", "tests/generate/engines/test_contract.py", "tests/generate/engines/test_stops_across_cuts.py"), (r"([,(] ?)begun=", r"\1num_prefix="))
sub(having(r"lost\.turns\[0\]\.begun|\.begun\.tolist"), (r"\.begun\.tolist", ".prefix.tolist"))

# batches
buffers = having(r"\(Buffer\)|Buffer\b", ("strop/recipes/agent/webrl", "strop/recipes/select/dots_rr", "strop/recipes/replay", "strop/replay", "strop/roles", "strop/run_state"))
sub(buffers, (r"def draw\(self, count", "def sample(self, count"), (r"(buffer|inner)\.draw\(", r"\1.sample("))
sub(having(r"\.draw\(", ("tests/replay", "tests/recipes/replay", "tests/recipes/agent/test_webrl", "tests/recipes/select/test_dots_rr")), (r"\b(buffer|other|ours|theirs|first|second|each|again)\.draw\(", r"\1.sample("))
sub(f("strop/storage/ledger/ledger.py"), (r"def draw\(self, step", "def trained_groups(self, step"))
sub(having(r"\.draw\(", ("tests", "benchmarks", "strop/launch")), (r"\b(ledger|book|first|second|read_only=True\)|Ledger\([^()\n]*\))\.draw\(", r"\1.trained_groups("))
sub(having(r"def draws\(self|pace\.draws"), (r"def draws\(self", "def batch_size(self"), (r"pace\.draws\(", "pace.batch_size("))
ridge = having(r"ridge_regression")  + f("strop/training/arithmetic/ridge_regression.py")
sub(ridge, (r"\bread_draws\b", "read_batches"), (r"\bwrite_draws\b", "write_batches"), (r"\bDraw\b", "LabelledBatch"), (r"\b_draws\b", "_batches"), (r"\bdraws\b(?=:|\)|,)", "batches"))
sub(f("strop/training/stream.py"), (r"\bdrawn\b", "batch_groups"))
sub(f("strop/run_state.py"), (r"\bdrawn\(", "next_batch("))
sub(having(r"run_state import [^\n]*\bdrawn\b"), (r"\bdrawn\b", "next_batch"))
sub(having(r"credit\("), (r"\.credit\(", ".set_advantage("), (r"def credit\(self", "def set_advantage(self"))

# sums of metrics
sub(f("strop/training/machine/step_totals.py", "strop/training/trainers/torch.py", "strop/training/machine/rank.py"), (r"\bFigures\b", "MetricSums"), (r"\bfigures\b", "metric_sums"))
sub(having(r"step_totals"), (r"\bFigures\b", "MetricSums"))
sub(f("strop/training/objective.py"), (r"per_token, figures = ", "per_token, own = "), (r"_merge\(metrics, figures, ", "_merge(metrics, own, "), (r"figures: Metrics, owner", "own: Metrics, owner"), (r"in figures\.items\(\):\n        metrics\[name if", "in own.items():\n        metrics[name if"))
# two names that would be one
sub(f("strop/recipes/reward/rlcf.py"), (r"\b_mark\b", "_rated"))
sub(f("strop/recipes/rollout/r3l.py"), (r"\bmarks\b", "scores_after"))
sub(f("strop/filter/rewards/preferred.py"), (r"marks = await told if inspect.isawaitable\(told\) else told", "raw = await told if inspect.isawaitable(told) else told"), (r"self\._score\(mark, attempt\) for mark, attempt in zip\(marks", "self._priced(value, attempt) for value, attempt in zip(raw"), (r"_score\(self, mark: float", "_priced(self, value: float"), (r"whole = mark\.end \+ sum\(span\.value for span in mark\.spans\) if isinstance\(mark, Paid\) else mark", "whole = value.end + sum(span.value for span in value.spans) if isinstance(value, Paid) else value"))
sub(f("strop/training/batch.py"), (r"\bvoices\b", "policy_indices"), (r"\bvoice_names\b", "policy_names"))
sub(having(r"batch\.voices|voice_names"), (r"batch\.voices\b", "batch.policy_indices"), (r"\bvoice_names\b", "policy_names"), (r"\bvoices=(?=torch|None|places|self)", "policy_indices="))
sub(f("strop/cli/commands/train.py"), (r"for doubt in probe_rewards\(run\):\n            print\(f\"warning: \{doubt\}\"", "for told in probe_rewards(run):\n            print(f\"warning: {told}\""))
sub(having(r"ask_requests import [^\n]*\bReply\b|class Reply\b"), (r"\bReply\b", "ServedCompletion"))
sub(code, (r"strop\.generate\.episode\b", "strop.generate.guarded_episode"), (r"from strop\.generate import episode\b", "from strop.generate import guarded_episode"))
sub(having(r"generate\.guarded_episode") + f("strop/generate/episode.py"), (r"\bEpisode\b", "GuardedEpisode"))
sub([p for p in files if p.suffix == ".md"], (r"generate/episode\.py", "generate/guarded_episode.py"), (r"test_episode\.py", "test_guarded_episode.py"))
subprocess.run(["git", "mv", "strop/generate/episode.py", "strop/generate/guarded_episode.py"], cwd=ROOT, check=True)
subprocess.run(["git", "mv", "tests/generate/test_episode.py", "tests/generate/test_guarded_episode.py"], cwd=ROOT, check=True)
# f-string of several words that is an expression
