"""Tables of the ledger, and SQL fragments that several queries share."""

from __future__ import annotations

from typing import NamedTuple

_COLUMNS = "id outcome origin error reward rewards turn_rewards facts parent comparison_group turns"
ROLLOUT = ", ".join(f"a.{name}" for name in _COLUMNS.split())
# how right a rollout is, from 0 to 1; NULL where no reward says so, or where it does not count
SUCCESS_OF = "CASE WHEN reward IS NOT NULL THEN json_extract(facts, '$.success') END"
# the index of rollouts holds what people filter and sort by, so that a look at a million of them reads no turns
SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, level INTEGER NOT NULL, messages TEXT NOT NULL, answer TEXT NOT NULL,
    tools TEXT NOT NULL, columns TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS groups (
    number INTEGER PRIMARY KEY, task TEXT NOT NULL REFERENCES tasks(id), version INTEGER NOT NULL,
    fate TEXT NOT NULL CHECK (fate IN ('running', 'skipped', 'waiting', 'gated', 'failed', 'trained')),
    reason TEXT NOT NULL DEFAULT '', at INTEGER, predicted REAL, spread REAL);
CREATE TABLE IF NOT EXISTS rollouts (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL REFERENCES groups(number),
    task TEXT NOT NULL REFERENCES tasks(id), parent TEXT NOT NULL, comparison_group TEXT NOT NULL, outcome TEXT NOT
    NULL, origin TEXT NOT NULL, reward REAL, rewards TEXT NOT NULL, facts TEXT NOT NULL, error TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    fate TEXT NOT NULL CHECK (fate IN ('waiting', 'gated', 'failed', 'trained')), turn_rewards TEXT NOT NULL,
    turns BLOB NOT NULL, place INTEGER);
CREATE INDEX IF NOT EXISTS rollouts_by_group ON rollouts(number, fate, origin, outcome, reward, tokens, task);
CREATE TABLE IF NOT EXISTS trainings (
    step INTEGER NOT NULL, slot INTEGER NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL,
    rollout TEXT NOT NULL REFERENCES rollouts(id), advantage BLOB, ratios BLOB, PRIMARY KEY (step, slot, place));
CREATE INDEX IF NOT EXISTS trainings_by_rollout ON trainings(rollout);
CREATE TABLE IF NOT EXISTS versions (step INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL);
"""

# how many of the policy's own rollouts of a group were right, and how many there were (see success.py); then
# all rollouts, and the lowest and the highest reward
_KNOWN = "a.rewards != '{}' AND json_extract(a.facts, '$.success') IS NOT NULL"
_OWN = f"a.origin = 'policy' AND a.outcome NOT IN ('failed', 'pruned') AND {_KNOWN}"
_WEIGHT = "1.0 / COALESCE(json_extract(a.facts, '$.survival'), 1.0)"
EVIDENCE = (
    f"TOTAL(CASE WHEN {_OWN} THEN {_WEIGHT} * json_extract(a.facts, '$.success') END), "
    f"TOTAL(CASE WHEN {_OWN} THEN {_WEIGHT} END), COUNT(a.id), MIN(a.reward), MAX(a.reward)"
)

OFFERED = (
    "SELECT t.source, t.level, g.fate = 'trained', "
    "AVG(CASE WHEN a.outcome NOT IN ('failed', 'pruned') THEN a.tokens END), "
    f"AVG(CASE WHEN a.fate = 'trained' THEN a.tokens END), g.version, g.predicted, {EVIDENCE} "
    "FROM groups g JOIN tasks t ON t.id = g.task LEFT JOIN rollouts a ON a.number = g.number "
    "GROUP BY g.number ORDER BY g.number"
)
_KIND = "origin || '/' || comparison_group || '/' || outcome || '/' || (parent != '')"
COMPOSED = (
    "SELECT number FROM rollouts GROUP BY number "
    "HAVING MAX(parent != '' OR comparison_group != '' OR origin != 'policy' OR outcome = 'pruned') "
    f"ORDER BY COUNT(DISTINCT {_KIND}) DESC, number DESC LIMIT ?"
)

# rollouts with what they had when they were trained last
_LAST = "(SELECT {} FROM trainings t WHERE t.rollout = a.id ORDER BY step DESC LIMIT 1)"
WITH_ADVANTAGES = f"SELECT {_LAST.format('advantage')}, {_LAST.format('ratios')}, a.task, {ROLLOUT} FROM rollouts a"

# of a group's rollouts, and of itself why it was left out
FATES = "SELECT id, fate FROM rollouts WHERE number=?1 UNION ALL SELECT '', reason FROM groups WHERE number=?1"


# broken promises, each counted: a rollout has one fate, is trained as that says, and no group is lost
PROMISES = {
    "trained without a training": "SELECT COUNT(*) FROM rollouts WHERE fate='trained' AND id NOT IN "
    "(SELECT rollout FROM trainings)",
    "training of a rollout not marked trained": "SELECT COUNT(*) FROM trainings t JOIN rollouts a "
    "ON a.id = t.rollout WHERE a.fate != 'trained'",
    "failed rollout trained": "SELECT COUNT(*) FROM rollouts WHERE fate='trained' AND outcome='failed'",
    "pruned rollout trained": "SELECT COUNT(*) FROM rollouts WHERE fate='trained' AND outcome='pruned'",
    "finished group without rollouts": "SELECT COUNT(*) FROM groups WHERE fate NOT IN ('running', 'skipped') "
    "AND number NOT IN (SELECT number FROM rollouts)",
    "rollout of a running group": "SELECT COUNT(*) FROM rollouts a JOIN groups g ON g.number = a.number "
    "WHERE g.fate = 'running'",
    "number skipped": "SELECT COALESCE(MAX(number) + 1, 0) - COUNT(*) FROM groups",
}


class Offered(NamedTuple):
    """One admitted group; tokens are means over its rollouts that count, None where there are none."""

    source: str
    level: int
    is_trained: bool
    tokens: float | None
    trained_tokens: float | None
    version: int
    predicted: float | None  # success, before the first rollout
    right: float  # of the policy's own rollouts
    tried: float  # how many those are
    rollouts: int  # of all kinds
    lowest: float | None  # reward
    highest: float | None

    @property
    def name(self) -> str:
        return f"{self.source} level {self.level}"

    @property
    def has_contrast(self) -> bool:
        return self.lowest is not None and self.highest is not None and self.highest - self.lowest > 1e-9
