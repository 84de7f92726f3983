"""What servers answer when they can't or won't, each in its own words and form, and what it comes to. Looked up on
2026-11-23: API references, the servers' sources, and issues where people quote what they got."""
# ruff: noqa: E501, RUF001  The words are quoted as they are.

import json
from typing import Any, NamedTuple

CLAUDE, RESPONSES, CHAT = "anthropic:claude-haiku-4-5", "openai:gpt-4.1", "openai-chat:qwen3"


class ServerAnswer(NamedTuple):
    server: str
    status: int
    body: Any
    """JSON, or text as it is sent."""
    model: str = CHAT

    @property
    def sent(self) -> bytes:
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    @property
    def content_type(self) -> str:
        if not isinstance(self.body, str):
            return "application/json"
        return "text/html" if self.body.lstrip().startswith("<") else "text/plain"


def claude(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def openai(message: str, code: Any = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code, **more}}


def flat(message: str, **more: Any) -> dict[str, Any]:
    """vLLM's older form, and SGLang's."""
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400, **more}


def gemini(message: str, status: str = "INVALID_ARGUMENT", code: int = 400, *details: Any) -> list[dict[str, Any]]:
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def within(said: Any) -> dict[str, Any]:
    """What OpenRouter passes on of a provider behind it."""
    metadata = {"raw": json.dumps(said), "provider_name": "Nvidia", "is_byok": False}
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}, "user_id": "user_1"}


def page(title: str) -> str:
    return f"<html>\n<head><title>{title}</title><style>b {{ color: red }}</style></head><body><center><h1>{title}</h1></center><hr><center>nginx</center></body></html>"


ONLY_SEEMS_SO = [
    (
        ServerAnswer(
            "OpenAI, the answer's limit",
            400,
            openai(
                "max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.",
                "invalid_value",
                param="max_tokens",
            ),
        ),
        "never",
        "invalid_request",
    ),
    (
        ServerAnswer(
            "Bedrock, the answer's limit",
            400,
            openai(
                "The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048."
            ),
        ),
        "never",
        "invalid_request",
    ),
    (
        ServerAnswer("the answer's limit", 400, openai("max_tokens exceeds the limit of 8192")),
        "never",
        "invalid_request",
    ),
    (
        ServerAnswer(
            "Bedrock, too often",
            429,
            {"message": "Too many tokens, please wait before trying again.", "__type": "ThrottlingException"},
        ),
        "retry",
        "rate_limit",
    ),
    (
        ServerAnswer(
            "OpenAI, a tool's name",
            400,
            openai(
                "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 82 instead.",
                "string_above_max_length",
                param="tools[0].function.name",
            ),
        ),
        "never",
        "invalid_request",
    ),
    (
        ServerAnswer(
            "Anthropic, a tool's name",
            400,
            claude("tools.3.custom.name: String should have at most 128 characters"),
            CLAUDE,
        ),
        "never",
        "invalid_request",
    ),
    (ServerAnswer("nginx", 400, page("400 Request Header Or Cookie Too Large")), "never", "invalid_request"),
    (
        ServerAnswer(
            "an image's size",
            400,
            claude("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"),
            CLAUDE,
        ),
        "repair",
        "invalid_request",
    ),
    (ServerAnswer("nothing at all", 400, ""), "never", "invalid_request"),
]
"""With words of length in it, of something else."""

PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaMetric": "m", "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}
PER_MINUTE = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaMetric": "m", "quotaId": "GenerateContentInputTokensPerModelPerMinute"}],
}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
PLAN = "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."

SPENT = [
    ServerAnswer("OpenAI", 429, openai("You exceeded your current quota.", "insufficient_quota"), RESPONSES),
    ServerAnswer("OpenAI, no account", 429, openai("Your account is not active.", "billing_not_active")),
    ServerAnswer("Anthropic", 400, claude("Your credit balance is too low to access the Anthropic API."), CLAUDE),
    ServerAnswer(
        "Anthropic, its own limit",
        400,
        claude("You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."),
        CLAUDE,
    ),
    ServerAnswer("Anthropic, billing", 402, claude("Add a card.", "billing_error"), CLAUDE),
    ServerAnswer("DeepSeek", 402, openai("Insufficient Balance", "invalid_request_error")),
    ServerAnswer(
        "OpenRouter",
        402,
        {"error": {"message": "This request requires more credits, or fewer max_tokens.", "code": 402}},
    ),
    ServerAnswer(
        "Kimi",
        429,
        {
            "error": {
                "message": "Your account org-1 is suspended due to insufficient balance, please recharge your account or check your plan and billing details",
                "type": "exceeded_current_quota_error",
            }
        },
    ),
    ServerAnswer(
        "Kimi, within OpenRouter",
        429,
        within({"error": {"message": "…", "type": "exceeded_current_quota_error"}}),
    ),
    ServerAnswer("GLM", 429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}),
    ServerAnswer(
        "GLM, a plan",
        429,
        {"error": {"code": "1308", "message": "Usage limit reached for 5 hour. Your limit will reset at 2026-11-24"}},
    ),
    ServerAnswer("MiniMax", 429, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
    ServerAnswer("Gemini, none today", 429, gemini(PLAN, "RESOURCE_EXHAUSTED", 429, PER_DAY, RETRY_INFO)),
    ServerAnswer(
        "Gemini, none at all",
        429,
        gemini(
            f"{PLAN}\n* Quota exceeded for metric: m, limit: 0\nPlease retry in 20.04466179s.", "R", 429, RETRY_INFO
        ),
    ),
    ServerAnswer("Gemini, no more said", 429, gemini(PLAN, "RESOURCE_EXHAUSTED", 429)),
    ServerAnswer(
        "xAI",
        429,
        {
            "code": "Some resource has been exhausted",
            "error": "Your team has either used all available credits or reached its monthly spending limit.",
        },
    ),
    ServerAnswer(
        "Fireworks", 412, openai("Account a is suspended, possibly due to reaching the monthly spending limit.")
    ),
    ServerAnswer(
        "Hugging Face", 402, {"error": "You have exceeded your monthly included credits for Inference Providers."}
    ),
    ServerAnswer("SiliconFlow", 403, {"code": 30001, "message": "Sorry, your account balance is insufficient"}),
    ServerAnswer("Ark", 403, openai("Your account has an overdue balance.", "AccountOverdueError")),
    ServerAnswer(
        "DashScope", 400, openai("Access denied, please make sure your account is in good standing.", "Arrearage")
    ),
    ServerAnswer("Cohere", 429, {"message": "You are past the per month request limit for this model."}),
]
"""No waiting helps."""

TOO_OFTEN = [
    (
        ServerAnswer(
            "OpenAI",
            429,
            openai(
                "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s. Visit https://platform.openai.com/account/rate-limits to learn more.",
                "rate_limit_exceeded",
            ),
        ),
        None,
    ),
    (
        ServerAnswer(
            "Groq",
            429,
            openai(
                "Rate limit reached for model `m` on tokens per minute (TPM): Limit 6000, Used 5900, Requested 500. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
                "rate_limit_exceeded",
            ),
        ),
        None,
    ),
    (
        ServerAnswer(
            "Azure",
            429,
            openai(
                "Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.",
                "429",
            ),
        ),
        None,
    ),
    (ServerAnswer("Gemini, a minute's", 429, gemini(PLAN, "RESOURCE_EXHAUSTED", 429, PER_MINUTE, RETRY_INFO)), 34.07),
    (ServerAnswer("Vertex", 429, gemini("Resource has been exhausted (e.g. check quota).", "R", 429)), None),
    (
        ServerAnswer(
            "Vertex, a project's",
            429,
            gemini("Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute.", "R", 429),
        ),
        None,
    ),
    (ServerAnswer("GLM", 429, {"error": {"code": "1302", "message": "您的账户已达到速率限制"}}), None),
    (
        ServerAnswer(
            "OpenRouter",
            429,
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 429,
                    "metadata": {
                        "raw": "z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly."
                    },
                }
            },
        ),
        None,
    ),
    (
        ServerAnswer("Anthropic", 429, claude("This request would exceed your rate limit", "rate_limit_error"), CLAUDE),
        None,
    ),
    (ServerAnswer("a proxy", 429, page("429 Too Many Requests")), None),
]
"""Waiting helps: how long, where it is said."""

FILTERED = [
    ServerAnswer(
        "Azure",
        400,
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry. To learn more about our content filtering policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}},
            }
        },
    ),
    ServerAnswer(
        "OpenAI",
        400,
        openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"),
        RESPONSES,
    ),
    ServerAnswer("DashScope", 400, openai("Input data may contain inappropriate content.", "data_inspection_failed")),
    ServerAnswer("DeepSeek", 400, openai("Content Exists Risk", "invalid_request_error")),
    ServerAnswer(
        "Kimi",
        400,
        {
            "error": {
                "message": "The request was rejected because it was considered high risk",
                "type": "content_filter",
            }
        },
    ),
    ServerAnswer("MiniMax", 400, {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}),
    ServerAnswer(
        "GLM",
        400,
        {
            "error": {
                "code": "1301",
                "message": "系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语。",
            }
        },
    ),
    ServerAnswer(
        "OpenRouter",
        403,
        {
            "error": {
                "message": 'Your chosen model requires moderation and your input was flagged for "violence".',
                "code": 403,
                "metadata": {"reasons": ["violence"], "flagged_input": "…"},
            }
        },
    ),
    ServerAnswer("Bedrock, by a gateway", 400, {"detail": "The request was blocked by a guardrail."}),
]
"""Another provider may take it."""

FILTERED_IMAGES = [
    ServerAnswer(
        "DashScope", 400, openai("Input image data may contain inappropriate content.", "data_inspection_failed")
    ),
    ServerAnswer(
        "Azure", 400, openai("Your input image may contain content that is not allowed by our safety system.")
    ),
]
"""Without the image it is taken."""
