"""Page *rollout*: one conversation with statistics of every token, a rollout of the same group for comparison, and the
group's tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from markupsafe import Markup

from strop.errors import ConfigurationError
from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import PageQuery, WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.metrics.group_tree import shown_group
from strop.observe.report.group_page import trees
from strop.observe.report.rollout_page import conversations, readable
from strop.observe.report.templates import compiled, visible
from strop.observe.run_files.run_info import rules_of
from strop.storage.ledger.browser import LedgerBrowser
from strop.storage.ledger.ledger import Ledger
from strop.types import Rollout

_NOBODY = "nobody"
_TEMPLATE = """\
<p class="eyebrow">group {{ group.number }} · version {{ group.version }}</p>
<h1>Rollout {{ rollout.id }}</h1>
<p class="soft">{{ told }}</p>
{%- if is_live %}
<form class="card choice" action="rollout">
  <input type="hidden" name="run" value="{{ run.name }}"><input type="hidden" name="id" value="{{ rollout.id }}">
  <label>beside it <select name="beside"><option>{{ nobody }}</option>{% for each in siblings %}
    <option value="{{ each.id }}"{{ " selected" if beside and each.id == beside.id }}>{{ each.id }}, reward
      {{ "{:.3g}".format(each.reward) if each.is_scored else "–" }}</option>{% endfor %}</select></label>
  <button>show</button>
  <a{{ href("rollouts", run=run.name, task=rollout.task.id) }}>all rollouts of this task</a>
</form>
{%- endif %}
<p class="lead">Tokens can be coloured by the advantage that they had when they were trained last, by the probability
with which
  they were sampled, by the ratio of the policy's probability before the step to that (known of rollouts that were
  scored again, {{ rescored }}; others are grey), by the version of the weights that wrote them, or by whether they were
  trained on; rest on one to read all that is known of it.</p>
{{ conversations }}
<h2>The group</h2>
<p class="lead">A branch stands below its parent, the pale part of its bar is what it read from it; a bar's length is in
  tokens, its colour says how the rollout was rewarded.</p>
{{ tree }}
"""


def rollout(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    run = run_index.run(asked.one("run"))
    name = asked.one("id")
    return WatchPage(f"rollout {name}", "", lambda: _body(run_index, run, name, asked.one("beside")), run.name)


def _body(run_index: RunIndex, run: LiveRun, name: str, beside: str) -> Markup:
    number, fates = _found(run, name)
    with closing(Ledger(run.folder.ledger, read_only=True)) as ledger:
        group = ledger.whole(number)
        one = next(each for each in group.rollouts if each.id == name)
        siblings = [each for each in group.rollouts if each.id != name]
        other = _beside(one, siblings, beside)
        # with the advantage that they had when they were trained last
        shown = [ledger.rollout(each.id) for each in (one, other) if each is not None]
    rules, href = rules_of(run.folder), run_index.to_rollouts(run)
    columns = [(f"{each.id}, {fates.get(each.id, '')}", [readable(each, run.reader, rules)]) for each in shown]
    text = compiled(_TEMPLATE).render(
        run=run,
        is_live=run_index.kept is None,
        group=group,
        rollout=one,
        told=visible(_told(one, fates)),
        nobody=_NOBODY,
        siblings=siblings,
        beside=other,
        conversations=conversations(columns, href),
        tree=trees([shown_group(group, fates)], href),
        rescored=_rescored(run),
        href=run_index.href,
    )
    return Markup(text)


def _found(run: LiveRun, name: str) -> tuple[int, dict[str, str]]:
    """The number of a rollout's group, and the fates in it."""
    if not run.folder.ledger.is_file():
        raise ConfigurationError(f"{run.name} has no ledger yet")
    with LedgerBrowser(run.folder.ledger) as browser:
        number = browser.number_of(name)
        if number is None:
            raise ConfigurationError(f"the ledger of {run.name} has no rollout {name!r}")
        return number, browser.fates(number)


def _rescored(run: LiveRun) -> str:
    every = int(run.settings.get("rescore_every", 0))
    steps = "step" if every == 1 else f"{every} steps"
    return f"one batch of each {steps}" if every else "of which this run has none"


def _beside(one: Rollout, siblings: Sequence[Rollout], wanted: str) -> Rollout | None:
    """The one that is asked for, or else the one whose reward differs most."""
    if wanted == _NOBODY or not siblings:
        return None
    found = next((each for each in siblings if each.id == wanted), None)
    return found or max(siblings, key=lambda each: (each.is_scored, abs(each.reward - one.reward)))


def _told(rollout: Rollout, fates: dict[str, str]) -> str:
    """What is known of it beside its words."""
    rewards = [f"{name} {value:.3g}" for name, value in rollout.rewards.items()]
    facts = [f"{name} {value:.3g}" for name, value in sorted(rollout.facts.items())]
    by_turn = [f"{value:.3g}" for value in rollout.turn_rewards]
    known = [rollout.origin.value, rollout.outcome.value, fates.get(rollout.id, "")]
    known += [f"branch of {rollout.parent}"] if rollout.parent else []
    known += [f"comparison group {rollout.comparison_group}"] if rollout.comparison_group else []
    known += [f"rewards: {', '.join(rewards)}"] if rewards else []
    known += [f"by turn: {', '.join(by_turn)}"] if any(rollout.turn_rewards) else []
    known += [f"facts: {', '.join(facts)}"] if facts else []
    known += [f"error: {rollout.error}"] if rollout.error else []
    return " · ".join(each for each in known if each)
