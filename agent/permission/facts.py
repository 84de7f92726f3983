"""Facts are what an activity must find out about a call before `agent/` can decide on it.

Facts are recorded; `decision_table` reads nothing else. So a parser or a file system is asked once,
in an activity, and replay never asks again.
"""

from collections.abc import Iterator
from typing import Literal

from longhaul.agent.plain.values import Many, OpenValue, sparse

Boundary = Literal["", "none", "off", "proven", "all"]
"""What holds a command to what was proven of it: nothing can, nothing is to, a sandbox around what runs unasked, or
around every command. Empty: it needs no holding."""
Confined = Literal["", "read", "edit"]
"""What a call that runs unasked may do to the machine, by the sandbox that it runs in. Empty: as a person, a rule or
the mode allowed it."""


class SubCommand(OpenValue):
    """One simple command of a shell line, wrappers looked through."""

    words: Many[str]
    """The literal words, quotes removed; the program is `words[0]`, a path cut to its last part only for matching.

    A redirection that writes is a sub-command of its own, `> FILE`; an assignment leads its words, `A=1 make`.
    """
    read_only: bool = sparse(False)
    """Proven from a positive list of programs, subcommands and flags; never presumed."""
    edits_only: bool = sparse(False)
    """Proven to change nothing but the paths that the facts list as written (`mkdir a`, `> FILE`)."""


class PathFact(OpenValue):
    """One path that the call would read or write."""

    path: str
    """Absolute, symlinks resolved."""
    named: Many[str] = sparse(())
    """Other absolute names of it, where links lead to it: as the call spells it, at each link on the way, and as a deny
    or ask rule spells it. What is denied or asked by one name is so by all of them; only `path` can be allowed."""
    access: Literal["read", "write"] = sparse("read")
    inside: bool = sparse(False)
    """Under the workspace root, or, where a tool only reads, in what was offloaded for the session."""
    searched: bool = sparse(False)
    """Whatever lies below may be read as well."""
    danger: str = sparse("")
    """Why touching it is dangerous (".git is configuration that runs"), empty when it is not."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that are known of it."""
        return self.path, *self.named


class CallFacts(OpenValue):
    """Findings about one tool call, made by `call_model` or `examine_calls`."""

    arguments_error: str = sparse("")
    """Why the arguments can't be used (not JSON, against the schema): a sentence that the model reads."""
    cwd: str = sparse("")
    """The working directory that the findings assume."""
    read_only: bool = sparse(False)
    """The whole call is proven to change nothing."""
    commands: Many[SubCommand] = sparse(())
    paths: Many[PathFact] = sparse(())
    mentioned: tuple[tuple[str, ...], ...] = sparse(())
    """Names of each path that a word of an unproven command may mean, as far as a deny or ask rule speaks of it."""
    not_understood: str = sparse("")
    """The first construct that the parser or the examiner did not understand: the call asks."""
    safety: str = sparse("")
    """Why a person should look whatever the rules say (a dangerous command); empty when nothing was seen."""
    before: str = sparse("")
    """For edits: sha-256 of the file's bytes as seen; "absent" when there is no file."""
    after: str = sparse("")
    """For edits: sha-256 of the bytes that the call would write."""
    risk: Literal["", "low", "medium", "high", "unknown"] = sparse("")
    """What the agent's security analyzers think of it, the worst of them; empty: none has looked."""
    risk_reason: str = sparse("")
    boundary: Boundary = sparse("")
    """On the worker that looked; a run where it is not so needs another decision."""
    no_boundary: str = sparse("")
    """Why there is none, where it is `none`."""
    notice: str = sparse("")
    """What a person should see beside the arguments: a unified diff for edits (≤ 4,000 characters)."""

    @property
    def proven(self) -> bool:
        """Whether each part of a command line is: it runs in an environment that nothing of the workspace steers."""
        each = all(command.read_only or command.edits_only for command in self.commands)
        return bool(self.commands) and each and not self.not_understood

    def as_run(self) -> "CallFacts":
        """What a call is given of them when it runs, without what is for permission and for people alone."""
        return self.model_copy(update={"notice": "", "commands": ()})


def commands_named(facts: CallFacts) -> Iterator[tuple[str, ...]]:
    """The words of each command; of a redirection once more for each further name of its file."""
    further = {path.path: path.named for path in facts.paths if path.access == "write"}
    for command in facts.commands:
        yield command.words
        if command.words[:1] == (">",):
            yield from ((">", name) for name in further.get(command.words[-1], ()))
