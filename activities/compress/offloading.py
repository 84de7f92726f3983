"""What leaves a context is handed to the offloader that the session's agent names."""

from activities.compress.compressing import Dropped, Offload
from activities.offload.opening import Offloaders


def offload_to(offloaders: Offloaders) -> Offload:
    async def offload(dropped: Dropped) -> str:
        offloader = await offloaders.get(dropped.offloader, dropped.agent, dropped.user_id)
        if offloader is None:
            return ""
        return await offloader.offload_context(dropped.session_id, list(dropped.messages), batch=dropped.batch)

    return offload
