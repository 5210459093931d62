"""Closing lines about skipped tests, by reason; where CI=true on Linux, a skipped test of isolation fails the run.

A plugin of pytest: `conftest.py` brings it in.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

import pytest

ISOLATION = "isolation:"  # how the reason begins wherever a test of isolation is skipped
_LONGEST = 160  # characters of a reason


def _reasons(reporter: pytest.TerminalReporter) -> Counter[str]:
    """How often each reason was given; a file that is skipped as a whole counts once."""
    told = (report.longrepr for report in reporter.stats.get("skipped", []))
    said = (each[2] if isinstance(each, tuple | list) else str(each) for each in told)
    return Counter(" ".join(each.removeprefix("Skipped: ").split())[:_LONGEST] for each in said)


def _sandbox(reasons: Counter[str]) -> int:
    return sum(count for reason, count in reasons.items() if reason.startswith(ISOLATION))


def _must_stand() -> bool:
    return os.environ.get("CI") == "true" and sys.platform == "linux"


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and _must_stand() and _sandbox(_reasons(reporter)):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = _reasons(terminalreporter)
    if not reasons:
        return
    terminalreporter.section(f"{reasons.total()} skipped: tests, or files as a whole")
    for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
        terminalreporter.line(f"{count:4} {reason}")
    if _must_stand() and (sandbox := _sandbox(reasons)):
        terminalreporter.line(
            f"FAILED: {sandbox} tests of isolation were skipped, and CI=true on Linux", red=True, bold=True
        )
