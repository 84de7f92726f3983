"""Taint says that words have come in that nobody vouches for; this file finds where they come from, and which calls
could carry something away.

Whoever writes a web page, a mail or a file elsewhere can write instructions for the model into it. Once such a text is
in the context, a call that goes out is looked at with other eyes.
"""

from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.permission.interpreters import INTERPRETERS
from longhaul.agent.plain.word_sets import names
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.known_names import MCP

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


def brings_in(tool: ToolDescriptor | None, facts: CallFacts, name: str, *, outside: bool) -> str:
    """Why a call's result is nothing that anybody here vouches for; empty when it is."""
    if outside or (tool is not None and tool.external):
        return f"a result of {name!r} was handed in from outside"
    if name.startswith(MCP) or (tool is not None and tool.untrusted):
        return f"{name!r} brought in what others wrote"
    elsewhere = next((path for path in facts.paths if path.access == "read" and not path.inside), None)
    if elsewhere is not None:
        return f"{name!r} read {elsewhere.path!r}, which is not of the workspace"
    if name == "Bash" and (program := _network_program(facts)):
        return f"`{program}` brought in what others wrote"
    return "a command that was not understood has run" if name == "Bash" and facts.not_understood else ""


def goes_out(tool: ToolDescriptor, facts: CallFacts) -> str:
    """How a call could carry something away; empty when it stays here."""
    if tool.name == "Bash":
        if facts.not_understood:
            return f"it contains {facts.not_understood}"
        if program := _network_program(facts) or _interpreter(facts):
            return f"it runs `{program}`"
        return ""
    if tool.name in BUILT_IN or tool.inside:
        return ""
    if tool.external or tool.name.startswith(MCP):
        return "it is done outside"
    return (
        ""
        if tool.effect is Effect.READ and not tool.untrusted
        else f"what {tool.name!r} does is not known to stay here"
    )


def _network_program(facts: CallFacts) -> str:
    for command in facts.commands:
        words = [word for word in command.words if "=" not in word] or list(command.words)
        program = words[0].rsplit("/", 1)[-1] if words else ""
        if program in _NETWORK:
            return program
        if any(word in _NETWORK_WITH.get(program, ()) for word in words[1:]):
            return program
    return ""


def _interpreter(facts: CallFacts) -> str:
    found = (
        command.words[0].rsplit("/", 1)[-1] for command in facts.commands if command.words and not command.read_only
    )
    return next((program for program in found if program in INTERPRETERS), "")
