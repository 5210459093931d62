"""Training corpus of the pocket model: conversations from the environments, with deliberate mistakes that set its
accuracy.

Only the training side of each environment is used, so that held-out tasks stay unseen.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from strop.environments.bundled.guess import Guess, GuessEpisode
from strop.environments.bundled.keyvalue import KEYS, KeyValue, KeyValueEpisode, call, parse
from strop.environments.bundled.next_state import NextState
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import sum_steps, think
from strop.environments.judging.verdict_questions import BAD, GOOD, about
from strop.pocket.completions import SINGLE_TURN, Completions
from strop.pocket.search_tasks import Searches
from strop.pocket.target_accuracy import ACCURACY, CAREFUL_MISTAKES, VERDICTS, slip_number, step_error
from strop.types import Message, Task

# tasks of the corpus come from a seed of their own; runs use small ones
ENV_SEED = 1_000_000

# shares of conversations
KINDS = {
    "plain": 0.41,
    "strategy": 0.18,
    "retry": 0.09,
    "hint": 0.09,
    "follow up": 0.05,
    "side by side": 0.05,
    "verdict": 0.03,
    "foretelling": 0.03,
    "searching": 0.03,
    "chat": 0.04,
}
ENVS = {"arithmetic": 0.36, "countdown": 0.22, "compose": 0.14, "keyvalue": 0.14, "guess": 0.14}

_SYSTEM = ("be brief", "you are a helpful assistant", "think step by step", "you are strop, a small model")
_CHAT = (
    ("hi", "hello"),
    ("hello", "hi, what shall we do?"),
    ("good morning", "good morning"),
    ("how are you?", "fine, thanks"),
    ("thanks", "you are welcome"),
    ("who are you?", "strop, a small model"),
    ("what can you do?", "sums, strings, numbers, look-ups and guessing"),
    ("ok", "good"),
    ("bye", "goodbye"),
)


@dataclass(frozen=True)
class Conversation:
    """Messages; those of the assistant are trained on from index `trained_from` on."""

    messages: tuple[Message, ...]
    trained_from: int = 0


def user(text: str) -> Message:
    return Message("user", text)


def assistant(text: str) -> Message:
    return Message("assistant", text)


@dataclass(frozen=True)
class Author:
    """Generates conversations from one stream of random numbers."""

    stream: random.Random

    async def conversation(self) -> Conversation:
        """Any conversation, at times after a system message or a greeting."""
        written = await self._written(self._pick(KINDS))
        opening: list[Message] = []
        if self.stream.random() < 0.10:
            opening.append(Message("system", self.stream.choice(_SYSTEM)))
        if self.stream.random() < 0.05:
            opening.extend(self._small_talk())
        skipped = written.trained_from + len(opening) if written.trained_from else 0
        return replace(written, messages=(*opening, *written.messages), trained_from=skipped)

    async def _written(self, kind: str) -> Conversation:
        match kind:
            case "plain":
                return await self._plain()
            case "strategy":
                return await self._strategy()
            case "retry":
                return self._retry()
            case "hint":
                return self._hint()
            case "follow up":
                return self._follow_up()
            case "side by side":
                return self._side_by_side()
            case "verdict":
                return self._verdict()
            case "foretelling":
                task = NextState(self._level("next_state"), ENV_SEED).task(self._index())
                return Conversation((*task.messages, assistant(self._completions.predicted(task))))
            case "searching":
                return Conversation(Searches(self.stream).messages(self._level("search")))
        return Conversation(tuple(m for _ in range(self.stream.randint(1, 3)) for m in self._small_talk()))

    @property
    def _completions(self) -> Completions:
        return Completions(self.stream)

    async def _plain(self) -> Conversation:
        env = self._pick(ENVS)
        if env == "guess":
            return await self._guessing("")
        if env == "keyvalue":
            return await self._looking_up()
        task = self._task(env)
        return Conversation((*task.messages, assistant(self._completions.rollout(task))))

    async def _strategy(self) -> Conversation:
        """A word before the task says how to go about it."""
        word = self.stream.choice(("quick", "careful", "search", "up", "half"))
        if word in ("up", "half"):
            return await self._guessing(word)
        if word == "search":
            task = self._task("countdown")
            return Conversation((user(f"search: {prompt_of(task)}"), assistant(self._completions.searched(task))))
        task = self._task(self.stream.choice(("arithmetic", "arithmetic", "compose")))
        is_fast = word == "quick"
        completion = self._completions.quick(task) if is_fast else self._completions.rollout(task, CAREFUL_MISTAKES)
        return Conversation((user(f"{word}: {prompt_of(task)}"), assistant(completion)))

    def _retry(self) -> Conversation:
        """A wrong answer, which is not trained on, and a right one after the user says so."""
        task = self._task(self._pick_single_turn())
        right = SINGLE_TURN[task.source](task.level).solution(task)
        wrong = self._completions.wrong(task)
        messages = (*task.messages, assistant(wrong), user("wrong, try again"), assistant(right))
        return Conversation(messages, trained_from=len(messages) - 1)

    def _hint(self) -> Conversation:
        """The first steps stand in the prompt and are taken over without mistake."""
        task = self._task(self._pick_single_turn())
        env = SINGLE_TURN[task.source](task.level)
        given = self.stream.randint(1, 2)
        is_sum = task.source == "arithmetic"
        completion = self._completions.sum_up(task, right_steps=given) if is_sum else env.solution(task)
        return Conversation((user(f"{prompt_of(task)} hint: {env.hint(task, given)}"), assistant(completion)))

    def _follow_up(self) -> Conversation:
        messages: list[Message] = []
        for _ in range(self.stream.randint(2, 3)):
            task = self._task(self._pick_single_turn())
            messages += [*task.messages, assistant(self._completions.rollout(task))]
        return Conversation(tuple(messages))

    def _side_by_side(self) -> Conversation:
        """Two functions, each on a string of its own: several steps in one scratchpad, but no composition."""
        tasks = [self._task("compose") for _ in range(2)]
        worked = [self._completions.function(task, step_error("compose", 1, 1)) for task in tasks]
        prompt = " ".join(prompt_of(task).removesuffix("=?") for task in tasks) + "=?"
        completion = think([steps[0] for steps, _ in worked], " ".join(result for _, result in worked))
        return Conversation((user(prompt), assistant(completion)))

    def _verdict(self) -> Conversation:
        """A completion, which is not trained on, and whether it is good; as many are as are not."""
        task = self._task(self._pick_single_turn())
        is_right = self.stream.random() < 0.5
        completion = SINGLE_TURN[task.source](task.level).solution(task) if is_right else self._completions.wrong(task)
        is_called_good = is_right == (self.stream.random() < VERDICTS)
        messages = (*about(task.messages, completion), assistant(GOOD if is_called_good else BAD))
        return Conversation(messages, trained_from=len(messages) - 1)

    async def _guessing(self, word: str) -> Conversation:
        """A game by halving or by counting up, as the word says; without a word, by the level's accuracy."""
        level = self._level("guess")
        task = Guess(level, ENV_SEED).task(self._index())
        episode = GuessEpisode()
        await episode.reset(task)
        is_half = word == "half" or (not word and self.stream.random() < ACCURACY["guess"][level])
        messages = [user(f"{word}: {prompt_of(task)}")] if word else list(task.messages)
        is_done = False
        while not is_done:
            messages.append(episode.demonstrate() if is_half else _counted_up(episode))
            seen = await episode.step(messages[-1])
            messages += seen.messages
            is_done = seen.done
        return Conversation(tuple(messages))

    async def _looking_up(self) -> Conversation:
        level = self._level("keyvalue")
        task = KeyValue(level, ENV_SEED).task(self._index())
        episode = KeyValueEpisode()
        await episode.reset(task)
        mistake = "" if self.stream.random() < ACCURACY["keyvalue"][level] else self.stream.choice(_mistakes(task))
        messages = list(task.messages)
        for completion in self._calls(task, episode.store, mistake):
            messages.append(assistant(completion))
            messages += (await episode.step(messages[-1])).messages
        return Conversation(tuple(messages))

    def _calls(self, task: Task, store: Mapping[str, str], mistake: str) -> list[str]:
        """All completions of one rollout; the mistake, if any, is made once and carried on."""
        keys, target = parse(prompt_of(task))
        if mistake == "skip":
            keys = keys[:-1]
        if mistake == "misread":
            keys[self.stream.randrange(len(keys))] = self.stream.choice([k for k in KEYS if k not in (*keys, target)])
        steps, total = self._added([int(store[key]) for key in keys], mistake == "slip")
        lookups = [call(f"get {key}") for key in keys]
        if not target or mistake == "forget":
            return [*lookups, think(steps, str(total))]
        return [*lookups, think(steps, call(f"set {target} {total}")), str(total)]

    def _added(self, values: list[int], has_slip: bool) -> tuple[list[str], int]:
        """A chain sum, with one slip at a random step if wanted."""
        if not has_slip:
            return sum_steps(values)
        at = self.stream.randrange(1, len(values))
        before, total = sum_steps(values[:at])
        slipped, total = sum_steps([total, values[at]], slip_number(self.stream, 1.0))
        after, total = sum_steps([total, *values[at + 1 :]])
        return [*before, *slipped, *after], total

    def _task(self, env: str) -> Task:
        return SINGLE_TURN[env](self._level(env), ENV_SEED).task(self._index())

    def _level(self, env: str) -> int:
        """Any level of the corpus, the harder ones more often."""
        levels = list(ACCURACY[env])
        return self.stream.choices(levels, weights=range(2, len(levels) + 2))[0]

    def _index(self) -> int:
        return self.stream.getrandbits(48)

    def _pick(self, shares: Mapping[str, float]) -> str:
        return self.stream.choices(list(shares), weights=list(shares.values()))[0]

    def _pick_single_turn(self) -> str:
        return self._pick({env: ENVS[env] for env in SINGLE_TURN})

    def _small_talk(self) -> tuple[Message, Message]:
        question, answer = self.stream.choice(_CHAT)
        return user(question), assistant(answer)


def _counted_up(episode: GuessEpisode) -> Message:
    return assistant(think([f"{episode.low}..{episode.high}"], str(episode.low)))


def _mistakes(task: Task) -> list[str]:
    """The mistakes that are possible in a look-up task."""
    keys, target = parse(prompt_of(task))
    return ["misread", *(["skip", "slip", "slip"] if len(keys) > 1 else []), *(["forget"] if target else [])]
