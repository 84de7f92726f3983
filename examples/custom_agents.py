"""Agents whose replies are code: a pipeline without a model, a router, and a debate.

docs/agents/custom-agents.md says the rules.

LONGHAUL_TOOLS=examples.custom_agents longhaul dev
"""

import re

from longhaul import CustomAgent, CustomAgentSession, Msg, custom_agent


@custom_agent("word_count")
class WordCount(CustomAgent):
    """Reads the files that a request names, counts their words, and writes the counts down. No model is asked."""

    async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
        names = re.findall(r"[\w./-]+\.txt", msg.get_text_content())
        if not names:
            return "Name the text files whose words are to be counted."
        read = await session.together(*(session.call("Read", file_path=name) for name in names))
        lines = [
            f"{name}: {len(result.text.split())}" if result.ok else f"{name}: not read"
            for name, result in zip(names, read, strict=True)
        ]
        written = await session.call("Write", file_path="counts.md", content="\n".join(lines))
        return "\n".join(lines) if written.ok else f"The counts were not written: {written.text}"


@custom_agent("router")
class Router(CustomAgent):
    """Hands a request to the one of two agents that it is for."""

    def __init__(self) -> None:
        self.urgent = False

    async def observe(self, msg: Msg) -> None:
        self.urgent = self.urgent or "urgent" in msg.get_text_content().lower()

    async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
        text = msg.get_text_content()
        agent = "billing" if re.search(r"\b(bill|invoice|refund)", text, re.IGNORECASE) else "support"
        await session.say(f"I hand this to {agent}.")
        answer = await session.ask(agent, f"Urgent! {text}" if self.urgent else text)
        return answer.text if answer.ok else f"{agent} could not answer: {answer.text}"

    async def handle_interrupt(self, message: str, tools: tuple[str, ...]) -> str:
        return "I have taken it back from the agent that worked on it." if tools else ""


@custom_agent("debate")
class Debate(CustomAgent):
    """Two agents speak for and against, two rounds; the agent's own model judges."""

    async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
        said: list[str] = []
        for _ in range(2):
            for speaker in ("advocate", "sceptic"):
                so_far = "\n".join(said) or "Nobody has spoken yet."
                answer = await session.ask(speaker, f"{msg.get_text_content()}\n\n{so_far}")
                said.append(f"{speaker}: {answer.text}")
        return await session.think("Who is right? Judge in one sentence.\n\n" + "\n".join(said))
