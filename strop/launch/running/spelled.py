"""Search for prompts that spell control tokens or markers of the chat template, before a run starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from strop.capabilities import inside
from strop.environments.data.table import Table
from strop.generate.templates.chat_template import Template
from strop.launch.checks.prompt_lengths import tasks_of
from strop.models.loading.model_names import model_folder
from strop.roles import Environment
from strop.run import Run
from strop.types import Task

_NAMED = 3  # tokens


def warnings(run: Run) -> list[str]:
    """Warnings, one for each environment whose prompts do; of environments that are no tables, the first task is
    read.
    """
    template = Template.load(model_folder(run.model))
    envs: dict[str, Environment] = {env.name: env for env in run.envs}
    tables = {table.name: list(tasks_of(table)) for table in inside(run, Table)}
    firsts = {name: [env.task(0)] for name, env in envs.items() if name not in tables}
    told = [_told(name, tasks, template) for name, tasks in (tables | firsts).items()]
    return [each for each in told if each]


def _told(name: str, tasks: Sequence[Task], template: Template) -> str:
    found, prompts = Counter[str](), 0
    for task in tasks:
        tokens = template.spelled(task.messages, task.tools)
        told = [message.content for message in task.messages if not message.is_completion]
        tokens += [marker for text in told for marker in template.hidden_markers if marker in text]
        prompts += bool(tokens)
        found.update(tokens)
    if not found:
        return ""
    named = ", ".join(f"{token!r} {count} times" for token, count in found.most_common(_NAMED))
    rest = f" and {len(found) - _NAMED} others" if len(found) > _NAMED else ""
    return (
        f"{prompts} of {len(tasks)} prompts of {name} spell what only the chat template may write ({named}{rest}): the "
        "model reads it letter by letter, and the template does not see it"
    )
