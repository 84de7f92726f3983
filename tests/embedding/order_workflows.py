"""Workflows of an application, in a file that its worker's sandbox can load."""

from temporalio import workflow


@workflow.defn
class Greeting:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"Hello {name}, from {'a sandbox' if workflow.unsafe.in_sandbox() else 'nowhere'}"
