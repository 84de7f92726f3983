"""WebFetch in live sessions: rules open hosts, others ask, and what was read taints the session."""

import json

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.activities.tools.web_server import Page, serving_site
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server


async def test_a_host_that_no_rule_opens_asks_and_its_page_taints(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"web_private": "127.0.0.0/8"})
    async with unserved.another_worker(), serving_site({"/day": Page(b"<h1>High water</h1><p>At six.</p>")}) as site:
        asked = (f"http://127.0.0.1:{site.port}/day", f"http://localhost:{site.port}/day", "http://10.20.0.7/")
        lines = [*(calls("WebFetch", url=url) for url in asked), {"text": "Six."}]
        rules = [{"tool_name": "WebFetch", "rule_content": "domain:127.0.0.1", "behavior": "allow"}]
        session = unserved.session(*lines, tools=("WebFetch",), permission={"rules": rules})

        waiting = await session.reply("When is high water?")
        (call,) = await session.pending()
        assert site.asked == [("127.0.0.1", "/day")], "nothing is asked before a person has allowed it"
        assert json.loads(call.input) == {"url": asked[1]}
        await session.confirm(call, allow=True, approver="ana", rules=call.suggested_rules)
        done = await session.wait(waiting.id)

        (first, read), (second, _), (third, refused) = results(done)
        assert (first, second, third) == (ToolResultState.SUCCESS, ToolResultState.SUCCESS, ToolResultState.ERROR)
        assert "# High water" in read
        assert "only public addresses are asked" in refused
        assert [host for host, _ in site.asked] == ["127.0.0.1", "localhost"]
        state = await session.state()
        assert state.tainted == "'WebFetch' brought in what others wrote"
        assert "WebFetch(domain:localhost)" in [rule.spelt() for rule in state.permission_context.rules]


async def test_a_page_that_a_program_reads_taints_its_session(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"web_private": "127.0.0.0/8"})
    async with unserved.another_worker(), serving_site({"/day": Page(b"<p>At six.</p>")}) as site:
        program = f"'six' in WebFetch(url='http://127.0.0.1:{site.port}/day')"
        session = unserved.session(
            calls("RunProgram", program=program),
            {"text": "Six."},
            tools=("RunProgram", "WebFetch"),
            permission={"rules": [{"tool_name": "WebFetch", "rule_content": "domain:127.0.0.1"}]},
        )

        done = await session.reply("When is high water?")

        assert results(done) == [(ToolResultState.SUCCESS, "True")]
        assert (await session.state()).tainted


async def test_an_agent_reads_why_its_workers_lack_the_search(stage: Stage) -> None:
    session = stage.session({"text": "Never."}, tools=("WebSearch",))

    answer = await session.reply("Look for the tides")

    assert "set LONGHAUL_WEB_SEARCH to the address of a search engine on the workers" in str(answer.error)
