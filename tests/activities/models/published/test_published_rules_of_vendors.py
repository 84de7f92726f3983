"""The same records and settings through pydantic-ai: what other vendors publish that they refuse, they don't."""

import pytest

from longhaul.activities.models.apis.vendors import VENDORS
from tests.activities.models.published.published import CHAT, DEEPSEEK, KIMI, OPEN
from tests.activities.models.published.published_cases import OFFERS, RECORDS, Offer
from tests.activities.models.published.test_published_rules import Kind, asking, rules_of, tried

OWN = {"deepseek": (DEEPSEEK, "deepseek-v4-pro"), "moonshotai": (KIMI, "kimi-k2.6"), "azure": (CHAT, "gpt-5.1")}
KINDS = {
    vendor: Kind(*OWN.get(vendor, (OPEN, "some/model")), f"ai:{vendor}", f"{vendor}.example/v1")
    for vendor in VENDORS
    if vendor not in ("bedrock", "google", "google-vertex")
}
"""Those of Bedrock and Google are no Chat Completions."""


@pytest.mark.proves("F6")
@pytest.mark.parametrize("vendor", KINDS)
async def test_no_record_and_no_setting_is_refused(vendor: str) -> None:
    kind, failed = KINDS[vendor], dict[str, str]()
    async with asking(kind, rules_of(kind.server)) as it:
        for name, record in RECORDS.items():
            failed |= {name: why} if (why := await tried(it, record, Offer())) else {}
        for name, offer in OFFERS.items():
            failed |= {name: why} if (why := await tried(it, RECORDS["a call and its result"], offer)) else {}

    assert failed == {}
