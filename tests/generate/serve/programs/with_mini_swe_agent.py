"""mini-swe-agent, in whose shell the store has two commands; calls of its tool, or text."""

import os
import sys

os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_SILENT_STARTUP": "1"}

import store
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel


class Shell(LocalEnvironment):
    def execute(self, action, cwd="", *, timeout=None):
        name, *words = action["command"].split()
        if name not in ("get", "set"):
            return super().execute(action, cwd, timeout=timeout)
        return {"output": vars(store)[name](*words), "returncode": 0, "exception_info": ""}


kind = LitellmTextbasedModel if "text" in sys.argv else LitellmModel
where = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
model = kind(model_name="openai/policy", model_kwargs=where, cost_tracking="ignore_errors")
about = {"system_template": "You have a shell.", "instance_template": "{{task}}", "step_limit": store.MOST_TURNS}
store.finish(DefaultAgent(model, Shell(), **about).run(store.TASK)["submission"].strip())
