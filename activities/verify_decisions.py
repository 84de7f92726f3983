"""verify_decisions: check the signatures of decisions. Keys stay on the worker; only the finding is recorded."""

from temporalio import activity

from longhaul.activities.attempt.secrets import SecretsSetupError
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.contract import VERIFY_DECISIONS
from longhaul.agent.entries import Verified, VerifyDecisions
from longhaul.agent.letters.approval_operations import BadKey, keys_of, why_not
from longhaul.agent.letters.bodies import Confirm


class Verifying:
    """Knows the keys of `LONGHAUL_APPROVAL_KEY`. Raises SecretsSetupError for a setting that can't be used."""

    def __init__(self, keys: str) -> None:
        try:
            self._keys = keys_of(keys)
        except BadKey as bad:
            raise SecretsSetupError(f"LONGHAUL_APPROVAL_KEY: {bad}") from bad

    @activity.defn(name=VERIFY_DECISIONS)
    async def verify_decisions(self, ask: VerifyDecisions) -> Verified:
        """Raises NotHere where there are no keys: another worker may have them."""
        if not self._keys:
            raise not_here("this worker has no LONGHAUL_APPROVAL_KEY to check a signed decision with")
        # The server says which session this is: a body can't.
        session = activity.info().workflow_id or ""
        why, key = why_not(Confirm.model_validate(ask.body), self._keys, session)
        return Verified(why=why, key=key)
