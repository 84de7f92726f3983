"""Findings about calls with what the agent's security analyzers think of them: part of `examine_calls`."""

import asyncio
from collections.abc import Mapping, Sequence

from longhaul.activities.analysis.analyzer import Around, Case, Finding
from longhaul.activities.analysis.chain import Analyzers, JudgeNotes, told_of
from longhaul.activities.attempt import own_session
from longhaul.activities.context.context_cache import Contexts
from longhaul.activities.contract import Analysis, ExamineCalls
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.conversation.messages import Msg, Usage

SIDE_BY_SIDE = 8
"""Calls that are looked at together; `workflows.activity_options` gives the activity time for all of them."""


class Analysing:
    def __init__(self, analyzers: Analyzers, contexts: Contexts) -> None:
        self._analyzers = analyzers
        self._contexts = contexts

    async def analyzed(
        self,
        ask: ExamineCalls,
        analysis: Analysis,
        texts: Mapping[str, str],
        facts: dict[str, CallFacts],
        around: Around,
        toolbox: Toolbox,
    ) -> tuple[dict[str, CallFacts], Usage | None, JudgeNotes]:
        """The findings with risk and reason, what it cost, and what was left out of requests for it. `texts` are the
        arguments by call id."""
        digest = digest_of(analysis.context.model_dump(mode="json"))
        room = asyncio.Semaphore(SIDE_BY_SIDE)
        fetched: asyncio.Task[Sequence[Msg]] | None = None

        async def context() -> Sequence[Msg]:
            nonlocal fetched
            fetched = fetched or asyncio.create_task(self._context(analysis))
            return await asyncio.shield(fetched)

        async def one(number: int, call_id: str, name: str) -> Finding:
            (tool,) = toolbox.descriptors([name])
            case = Case(
                call_id=call_id,
                tool=tool,
                arguments=texts[call_id],
                facts=facts[call_id],
                tainted=analysis.tainted,
                context=context,
                model=analysis.model,
                config=analysis.config,
                call_number=analysis.call_number + number,
                around=around,
            )
            async with room:
                return await self._analyzers.analyze(case, analysis.analyzers, digest)

        try:
            found = await asyncio.gather(*(one(number, call.id, call.name) for number, call in enumerate(ask.calls)))
        finally:
            if fetched is not None:
                fetched.cancel()
        paid = [finding.usage for finding in found if finding.usage is not None]
        with_risk = {
            call.id: facts[call.id].model_copy(update={"risk": finding.risk.value, "risk_reason": finding.reason})
            for call, finding in zip(ask.calls, found, strict=True)
        }
        return with_risk, sum(paid[1:], paid[0]) if paid else None, told_of(found)

    async def _context(self, analysis: Analysis) -> Sequence[Msg]:
        epoch = analysis.context.epoch
        session = self._contexts.session(own_session.key(), epoch)
        return await self._contexts.resolve(
            session, analysis.context, lambda start: own_session.pull_page(epoch, start)
        )
