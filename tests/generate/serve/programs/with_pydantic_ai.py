"""An agent of pydantic-ai."""

import store
from pydantic_ai import Agent, UnexpectedModelBehavior, UsageLimitExceeded, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel

agent = Agent(OpenAIChatModel("policy"), tools=[store.get, store.set])
try:
    made = agent.run_sync(store.TASK, usage_limits=UsageLimits(request_limit=store.MOST_TURNS))
    store.finish(made.output)
except (UnexpectedModelBehavior, UsageLimitExceeded):
    store.finish("")
