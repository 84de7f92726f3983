"""Tells an account whose credit or quota is used up from one that is only asked too often: no waiting helps the first,
and both come as 429."""

import re
from collections.abc import Sequence

_STATUSES = frozenset({400, 401, 402, 403, 412, 429})

_SPENT = re.compile(
    "|".join(
        (
            r"credit balance is too low|reached your specified api usage limits",  # Anthropic
            r"exceeded (?:your )?current quota|check your plan and billing",  # OpenAI, Gemini, Kimi
            r"insufficient[_ ](?:account )?(?:balance|quota|credits?|funds)",  # Kimi, DeepSeek, MiniMax, OpenRouter
            r"balance is (?:insufficient|not enough|too low)|余额不足|欠费",  # SiliconFlow, GLM, Ark
            r"requires more credits|used all available credits|out of credits|no credits? (?:left|remaining)",
            r"(?:monthly|weekly|daily) (?:spending limit|included credits|usage limit)",  # xAI, Fireworks, Hugging Face
            r"per month request limit|usage limit (?:reached|exceeded)|reached (?:your|its|the) usage limit",
            r"account.{0,40}(?:overdue|in arrears)",  # Ark
            r"too many tokens per day",  # Bedrock
        )
    ),
    re.IGNORECASE,
)
_SOON = re.compile(r"per[ _-]?(?:minute|second)|(?:retry|try again) in \d", re.IGNORECASE)
"""Gemini has the same words for a minute's quota, which is a rate limit, …"""
_NOT_SOON = re.compile(r"per[ _-]?(?:day|month)|limit: 0\b", re.IGNORECASE)
"""… except where it allows none at all, or none today."""


def is_spent(status: int, codes: Sequence[str], message: str) -> bool:
    """Whether a failure of this status says that there is no credit or quota left to wait for."""
    words = " ".join((*codes, message))
    if status not in _STATUSES or not _SPENT.search(words):
        return False
    return bool(_NOT_SOON.search(words)) or not _SOON.search(words)
