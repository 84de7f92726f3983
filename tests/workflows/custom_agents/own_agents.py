"""Custom agents of these tests, found by LONGHAUL_TOOLS=tests.workflows.custom_agents.own_agents."""

from typing import Any

from longhaul import CustomAgent, CustomAgentSession, Msg, custom_agent


@custom_agent("teller")
class Teller(CustomAgent):
    """Says what it has heard, and asks for operations."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def observe(self, msg: Msg) -> None:
        self.heard.append(f"{msg.name}: {msg.get_text_content()}")

    async def reply(self, msg: Msg, session: CustomAgentSession) -> str | dict[str, Any]:
        match msg.get_text_content().split():
            case ["fail"]:
                raise LookupError("the words are for the log alone")
            case ["fail", "elsewhere"]:
                return (await session.call("send", to=object())).text
            case ["leave"]:
                raise SystemExit(7)
            case ["say", *words]:
                for word in words:
                    await session.say(word)
                return "Said."
            case ["form", *words]:
                return {"words": words if session.structured_schema else "no form was asked for"}
            case ["send", *people]:
                sent = [await session.call("send", to=person) for person in people]
                return " | ".join(f"{result.state}: {result.text}" for result in sent)
            case ["fetch", number]:
                pages = [await session.call("fetch", page=page) for page in range(int(number))]
                return " ".join(result.text[:10] for result in pages)
            case _:
                return "; ".join(self.heard) or "nothing heard"

    async def handle_interrupt(self, message: str, tools: tuple[str, ...]) -> str:
        return f"Stopped over {', '.join(tools)}."


@custom_agent("slow")
class Slow(CustomAgent):
    async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
        return str(sum(number * number for number in range(30_000_000)))
