"""Every history that a server holds, replayed with nothing in memory, as a new worker would."""

from temporalio.client import Client
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from longhaul.workflows.hubs import AgentHub
from longhaul.workflows.session import AgentSession


async def unreplayable(client: Client, query: str = "") -> dict[str, str]:
    """Workflow id to what went wrong, of all runs that the query finds."""
    replayer = Replayer(
        workflows=[AgentSession, AgentHub],
        build_id="replay",
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=client.data_converter,
    )
    wrong: dict[str, str] = {}
    async for row in client.list_workflows(query or None):
        history = await client.get_workflow_handle(row.id, run_id=row.run_id).fetch_history()
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        if result.replay_failure is not None:
            wrong[row.id] = str(result.replay_failure)[:300]
    return wrong
