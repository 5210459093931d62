"""Resource limits of a program, and its result."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from strop.errors import ConfigurationError


class Ending(enum.Enum):
    """How a program ended; all but the last two are caused by the program."""

    FINISHED = "finished"  # by itself, whatever its exit code
    TIMEOUT = "timeout"  # in wall-clock or in its own processor time
    MEMORY = "memory"  # it asked for more than it may have
    OUTPUT = "output"  # it said more than it may
    KILLED = "killed"  # by a signal: a stack that is too deep, a call that crashed
    PROCESSES = "processes"  # it started more than may be at once
    DISK = "disk"  # it wrote more in its folder than it may
    DENIED = "denied"  # it asked the kernel for what nobody may
    LOST = "lost"  # whoever watched it is gone: nothing is known
    SETUP = "setup"  # the isolation could not be set up, so it was not run


MOST_PROCESSES = 256  # of a program, with their threads
_OF_THE_ENV = frozenset((Ending.LOST, Ending.SETUP))


@dataclass(frozen=True)
class Allowance:
    """Resource limits of one program."""

    seconds: float = 2.0  # of wall-clock time, and of one core
    memory: int = 256 << 20  # bytes of all its processes, beyond what an interpreter itself takes; as many of disk
    output: int = 1 << 20  # bytes of what it prints, and as many of what it complains

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.memory > 0 and self.output > 0):
            raise ConfigurationError(
                f"a program needs some time, memory and output, got {self.seconds:g} s, {self.memory} and "
                f"{self.output} bytes"
            )


USUAL = Allowance()


@dataclass(frozen=True)
class Ran:
    """Result of a program: untrusted, to be compared only with values that the sandbox never received."""

    ending: Ending
    stdout: str = ""
    stderr: str = ""
    code: int = 0  # its exit code, or minus the signal
    seconds: float = 0.0  # wall-clock time
    memory: int = 0  # bytes, at most

    @property
    def is_envs_fault(self) -> bool:
        """Whether this says nothing about the program: the rollout failed, and is no reward of 0."""
        return self.ending in _OF_THE_ENV

    @property
    def is_well(self) -> bool:
        """It ended by itself, and without an error."""
        return self.ending is Ending.FINISHED and self.code == 0
