"""A loop over the plain openai client that plays in the task's environment; knows nothing of strop."""

import json
import os
import sys
import urllib.request

from openai import OpenAI

client, told = OpenAI(max_retries=0), json.load(sys.stdin)
messages = told["messages"]
while True:
    completion = client.chat.completions.create(model="policy", messages=messages).choices[0].message.content or ""
    asked = urllib.request.Request(
        os.environ["STROP_URL"] + "/rollout/step",
        json.dumps({"content": completion}).encode(),
        {"authorization": "Bearer " + told["episode_key"]},
    )
    answer = json.load(urllib.request.urlopen(asked))
    if answer["done"]:
        break
    messages += [{"role": "assistant", "content": completion}, *answer["messages"]]
