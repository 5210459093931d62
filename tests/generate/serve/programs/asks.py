"""Asks the policy once; `a` is what it said."""

import json
import os
import sys
import urllib.request as u

told = json.load(sys.stdin)
messages = told["messages"]
head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
asked = u.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps({"messages": messages}).encode(), head
)
a = json.load(u.urlopen(asked))["choices"][0]["message"]["content"]
