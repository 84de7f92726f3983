"""Facts are what an activity must find out about a call before `longhaul/agent` can decide on it.

Facts are recorded; `decision_table` reads nothing else. So a parser or a file system is asked once,
in an activity, and replay never asks again.

Programs that run what they are given: a rule that allows one of them allows everything.

Taint says that words have come in that nobody vouches for; this file finds where they come from, and which calls
could carry something away.

Whoever writes a web page, a mail or a file elsewhere can write instructions for the model into it. Once such a text is
in the context, a call that goes out is looked at with other eyes.

The analyzer `rules` says how risky a call is by what is known of it. Pure.

Names of files that hold secrets: the tables, and what they say of one path.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from longhaul.agent.plain.text import names
from longhaul.agent.plain.values import Many, OpenValue, sparse
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Risk
from longhaul.agent.values.spec.known_names import MCP

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
    """Proven to change nothing but the paths that the analysis lists as written (`mkdir a`, `> FILE`)."""


class PathUse(OpenValue):
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


class CallAnalysis(OpenValue):
    """Findings about one tool call, made by `call_model` or `examine_calls`."""

    arguments_error: str = sparse("")
    """Why the arguments can't be used (not JSON, against the schema): a sentence that the model reads."""
    cwd: str = sparse("")
    """The working directory that the findings assume."""
    read_only: bool = sparse(False)
    """The whole call is proven to change nothing."""
    commands: Many[SubCommand] = sparse(())
    paths: Many[PathUse] = sparse(())
    hosts: Many[str] = sparse(())
    """Of addresses that the call asks on the network, in lower case, names in their ASCII form. A call that only reads
    is open where allow rules cover all of them: what it asks for may carry something away."""
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

    def as_run(self) -> "CallAnalysis":
        """What a call is given of them when it runs, without what is for permission and for people alone."""
        return self.model_copy(update={"notice": "", "commands": ()})


def commands_named(analysis: CallAnalysis) -> Iterator[tuple[str, ...]]:
    """The words of each command; of a redirection once more for each further name of its file."""
    further = {path.path: path.named for path in analysis.paths if path.access == "write"}
    for command in analysis.commands:
        yield command.words
        if command.words[:1] == (">",):
            yield from ((">", name) for name in further.get(command.words[-1], ()))


INTERPRETERS = names(
    "sh bash dash zsh ksh ash fish csh tcsh python python2 python3 pypy pypy3 node nodejs deno bun perl ruby php lua"
    " Rscript osascript pwsh tclsh"
)
"""Programs whose arguments or input are code."""


BUILT_IN = names("Bash Read Write Edit Grep Glob recall record_to_memory retrieve_from_memory retrieve_knowledge")
_NETWORK = names(
    "curl wget ssh scp sftp rsync nc ncat netcat telnet ftp tftp socat http https xh aria2c lynx w3m links elinks dig"
    " nslookup host ping traceroute gh glab hub aws gcloud az gsutil s3cmd rclone kubectl helm mail mailx sendmail mutt"
    " msmtp twine openssl wscat websocat ssh-copy-id mosh"
)
_NETWORK_WITH: dict[str, frozenset[str]] = {
    "git": names("push pull fetch clone remote ls-remote submodule send-email archive bundle request-pull"),
    "npm": names("publish install i add ci exec login"),
    "pnpm": names("publish install add dlx"),
    "yarn": names("publish install add dlx"),
    "pip": names("install download"),
    "pip3": names("install download"),
    "uv": names("add sync pip publish run tool"),
    "cargo": names("publish install add fetch"),
    "gem": names("push install"),
    "docker": names("push pull login run build"),
    "podman": names("push pull login run build"),
    "go": names("get install mod"),
}


def brings_in(tool: ToolDescriptor | None, analysis: CallAnalysis, name: str, *, outside: bool) -> str:
    """Why a call's result is nothing that anybody here vouches for; empty when it is."""
    if outside or (tool is not None and tool.external):
        return f"a result of {name!r} was handed in from outside"
    if name.startswith(MCP) or (tool is not None and tool.untrusted):
        return f"{name!r} brought in what others wrote"
    elsewhere = next((path for path in analysis.paths if path.access == "read" and not path.inside), None)
    if elsewhere is not None:
        return f"{name!r} read {elsewhere.path!r}, which is not of the workspace"
    if name == "Bash" and (program := _network_program(analysis)):
        return f"`{program}` brought in what others wrote"
    return "a command that was not understood has run" if name == "Bash" and analysis.not_understood else ""


def goes_out(tool: ToolDescriptor, analysis: CallAnalysis) -> str:
    """How a call could carry something away; empty when it stays here."""
    if tool.name == "Bash":
        if analysis.not_understood:
            return f"it contains {analysis.not_understood}"
        if program := _network_program(analysis) or _interpreter(analysis):
            return f"it runs `{program}`"
        return ""
    if tool.name in BUILT_IN or tool.inside:
        return ""
    if tool.external or tool.name.startswith(MCP):
        return "it is done outside"
    if analysis.hosts:
        return f"it asks {analysis.hosts[0]!r}"
    return (
        ""
        if tool.effect is Effect.READ and not tool.untrusted
        else f"what {tool.name!r} does is not known to stay here"
    )


def _network_program(analysis: CallAnalysis) -> str:
    for command in analysis.commands:
        words = [word for word in command.words if "=" not in word] or list(command.words)
        program = words[0].rsplit("/", 1)[-1] if words else ""
        if program in _NETWORK:
            return program
        if any(word in _NETWORK_WITH.get(program, ()) for word in words[1:]):
            return program
    return ""


def _interpreter(analysis: CallAnalysis) -> str:
    found = (
        command.words[0].rsplit("/", 1)[-1] for command in analysis.commands if command.words and not command.read_only
    )
    return next((program for program in found if program in INTERPRETERS), "")


MAX_LOOKED_AT_CHARS = 100_000
"""Of the arguments: what is hidden behind them counts as high."""
_FETCHERS = frozenset({"curl", "wget", "aria2c"})
_RUNNERS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "python", "python3", "perl", "ruby", "node", "php"})
_KEYS = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,255}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,250}|\bsk-[A-Za-z0-9_-]{20,250}|\bglpat-[A-Za-z0-9_-]{20,250}"
)


class Judged(NamedTuple):
    risk: Risk
    reason: str
    """A sentence without its full stop."""


def risk_by_rules(tool: ToolDescriptor, arguments: str, analysis: CallAnalysis, tainted: str) -> Judged:
    """`tainted`: how words came in that nobody vouches for; empty when none did."""
    out = goes_out(tool, analysis)
    if high := _high(arguments, analysis, out, tainted):
        return Judged(Risk.HIGH, high)
    if analysis.not_understood:
        return Judged(Risk.MEDIUM, f"it contains {analysis.not_understood}, which can't be judged without running it")
    elsewhere = next((path for path in analysis.paths if path.access == "write" and not path.inside), None)
    if elsewhere is not None:
        return Judged(Risk.MEDIUM, f"it writes {elsewhere.path!r}, which is not of the workspace")
    if out:
        return Judged(Risk.MEDIUM, f"{out}, and so may carry something away")
    return Judged(Risk.LOW, "nothing speaks against it")


def _high(arguments: str, analysis: CallAnalysis, out: str, tainted: str) -> str:
    if tainted and out:
        return f"{tainted}, and now a call goes out: {out}"
    if analysis.safety:
        return analysis.safety
    if risky := next((path for path in analysis.paths if path.danger), None):
        return f"it would {risky.access} {risky.path!r}: {risky.danger}"
    programs = {command.words[0].rsplit("/", 1)[-1] for command in analysis.commands if command.words}
    if programs & _FETCHERS and programs & _RUNNERS:
        return "it fetches something and runs it"
    if len(arguments) > MAX_LOOKED_AT_CHARS and out:
        return f"it goes out ({out}) with {len(arguments)} characters of arguments"
    if out and _KEYS.search(arguments):
        return f"what looks like a key would be carried away: {out}"
    return ""


_SECRET_FILES = names(
    ".netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .envrc .env .vault-token .htpasswd .s3cfg"
    " .boto .dockercfg .terraformrc .bash_history .zsh_history .python_history .node_repl_history"
    " .psql_history .mysql_history .rediscli_history .lesshst .xauthority credentials.json secrets.json"
    " secrets.yaml secrets.yml secrets.toml client_secret.json service-account.json"
    " application_default_credentials.json credentials.tfrc.json local.settings.json wp-config.php"
)
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".password-store"})
KEYRINGS = frozenset({".gnupg", ".password-store"})
"""Folders in which every file is a secret."""
_PRIVATE_KEYS = frozenset({"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"})
_SECRET_ENDINGS = (
    ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".ppk", ".tfstate", ".tfvars", ".ovpn"
)  # fmt: skip
_SECRET_IN_FOLDER = frozenset(
    {
        ("etc", "shadow"),
        ("etc", "gshadow"),
        (".aws", "credentials"),
        (".docker", "config.json"),
        (".kube", "config"),
        (".azure", "msal_token_cache.json"),
        ("gh", "hosts.yml"),
        ("gcloud", "credentials.db"),
        ("gcloud", "access_tokens.db"),
        (".cargo", "credentials.toml"),
        (".cargo", "credentials"),
        (".gem", "credentials"),
        (".m2", "settings.xml"),
        (".git", "credentials"),
        (".git", "config"),
    }
)
_PROCESS_SECRETS = frozenset({"environ", "mem", "cmdline", "maps", "auxv", "stack"})
_ENV_FILE = re.compile(r"\.env(?:[._-].+)?|[\w.-]+\.env", re.ASCII)
_HARMLESS_ENV = re.compile(
    r".*[._-](?:example|sample|template|dist|defaults?|schema)(?:\.env)?|.*\.d\.ts|.*\.[jt]s", re.ASCII
)


def is_secret(parts: tuple[str, ...]) -> bool:
    """Whether a path of these parts, in lower case, may hold secrets by its name."""
    name, folder = parts[-1], parts[-2] if len(parts) > 1 else ""
    if "proc" in parts[:2]:
        return name in _PROCESS_SECRETS
    if name in _SECRET_FOLDERS:
        return True
    if folder == ".ssh":
        return not name.endswith(".pub") and name not in ("known_hosts", "config")
    in_keyring = not KEYRINGS.isdisjoint(parts[:-1])
    by_name = name in _SECRET_FILES or name in _PRIVATE_KEYS or name.endswith(_SECRET_ENDINGS) or is_env_file(name)
    return in_keyring or (folder, name) in _SECRET_IN_FOLDER or by_name


def secret_globs() -> list[str]:
    """Globs (as in .gitignore) of what a search through a folder leaves out: read by name, these would ask."""
    names = [
        *sorted(_SECRET_FILES | _PRIVATE_KEYS),
        ".env[._-]*",
        "*.env",
        *(f"*{ending}" for ending in _SECRET_ENDINGS),
    ]
    folders = [f"**/{folder}/**" for folder in (".gnupg", ".password-store", ".ssh")]
    return [*names, *("/".join(("**", *pair)) for pair in sorted(_SECRET_IN_FOLDER)), *folders]


def is_env_file(name: str) -> bool:
    return _ENV_FILE.fullmatch(name) is not None and _HARMLESS_ENV.fullmatch(name) is None
