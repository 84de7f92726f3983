"""The table of verdicts: which failure of a model call deserves what, by class, HTTP status and code.

The rows name classes instead of importing them, so that a worker that never calls a provider never loads its SDK.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["retry", "retry_after", "fall_back", "compress", "never"]


@dataclass(frozen=True, slots=True)
class Row:
    kind: Kind
    error_type: str
    sentence: str


UNREACHABLE = Row("retry", "connection", "The connection to the model's provider failed.")
_TOO_SLOW = Row("retry", "connection", "The model's provider did not answer in time.")
_CUT_OFF = Row("retry", "connection", "The connection to the model's provider broke while it answered.")
_GARBLED = Row("retry", "upstream", "The model's provider sent an answer that can't be read.")
_OUR_FAULT = Row("never", "internal", "The model call failed by a mistake of ours, not of the provider.")
_NO_CREDENTIALS = Row("never", "setup", "The worker's credentials for the model's provider can't be loaded.")
BAD_ADDRESS = Row("never", "setup", "The address of the model's provider is wrong; correct base_url.")

BY_CLASS: Mapping[str, Row] = {
    "builtins.TimeoutError": _TOO_SLOW,
    "builtins.ConnectionError": _CUT_OFF,
    "socket.gaierror": UNREACHABLE,
    "ssl.SSLError": UNREACHABLE,
    "anyio.BrokenResourceError": _CUT_OFF,
    "anyio.ClosedResourceError": _CUT_OFF,
    "anyio.EndOfStream": _CUT_OFF,
    "httpx.HTTPError": _CUT_OFF,
    "httpx.TimeoutException": _TOO_SLOW,
    "httpx.ConnectError": UNREACHABLE,
    "httpx.ProxyError": UNREACHABLE,
    "httpx.DecodingError": _GARBLED,
    "httpx.SSEError": _GARBLED,
    "httpx.LocalProtocolError": BAD_ADDRESS,
    "httpx.UnsupportedProtocol": BAD_ADDRESS,
    "httpx.TooManyRedirects": BAD_ADDRESS,
    "httpx.InvalidURL": BAD_ADDRESS,
    "httpx.StreamError": _OUR_FAULT,
    "httpx.CookieConflict": _OUR_FAULT,
    "anthropic.AnthropicError": _OUR_FAULT,
    "anthropic.APIConnectionError": UNREACHABLE,
    "anthropic.APITimeoutError": _TOO_SLOW,
    "anthropic.APIResponseValidationError": _GARBLED,
    "anthropic.APIWebhookValidationError": _OUR_FAULT,
    "anthropic.RetryableError": _CUT_OFF,
    "anthropic.CredentialsError": _NO_CREDENTIALS,
    "anthropic.WorkloadIdentityError": _NO_CREDENTIALS,
    "openai.OpenAIError": _OUR_FAULT,
    "openai.APIConnectionError": UNREACHABLE,
    "openai.APITimeoutError": _TOO_SLOW,
    "openai.APIResponseValidationError": _GARBLED,
    "openai.LengthFinishReasonError": Row("never", "invalid_request", "The reply hit the limit of output tokens."),
    "openai.ContentFilterFinishReasonError": Row("fall_back", "upstream", "The provider's content filter stopped it."),
    "openai.InvalidWebhookSignatureError": _OUR_FAULT,
    "openai.SubjectTokenProviderError": _NO_CREDENTIALS,
    "openai.WebSocketConnectionClosedError": _CUT_OFF,
    "openai.WebSocketQueueFullError": _CUT_OFF,
}
"""Failures without an HTTP status. Keys are `package.Class`; httpx2's classes stand under httpx."""

RETRY_UPSTREAM = Row("retry", "upstream", "The model's provider failed")
REFUSED = Row("never", "invalid_request", "The model's provider refused the request")
_NO_ACCOUNT = Row("fall_back", "permission", "The account is not allowed to use this model")
LOCKED_OUT = Row("fall_back", "authentication", "The model's provider did not accept the worker's key; check it")
_NO_MODEL = Row("fall_back", "invalid_request", "The model's provider does not know this model or address")
TOO_LONG = Row("compress", "context_overflow", "The conversation is too long for the model")

BY_STATUS: Mapping[int, Row] = {
    400: REFUSED,
    401: LOCKED_OUT,
    402: _NO_ACCOUNT,
    403: _NO_ACCOUNT,
    404: _NO_MODEL,
    408: Row("retry", "connection", "The model's provider gave up waiting for the request"),
    409: RETRY_UPSTREAM,
    413: TOO_LONG,
    425: RETRY_UPSTREAM,
    429: Row("retry", "rate_limit", "The model's provider limits how often it may be called"),
    499: RETRY_UPSTREAM,
    501: Row("fall_back", "upstream", "The model's provider does not offer what was asked for"),
    529: Row("retry", "upstream", "The model's provider is overloaded"),
}
"""Other 4xx are refusals, other 5xx failures of the provider."""

SERVER_ERRORS = 500
"""From here on the status means that the provider failed."""

OUT_OF_CREDIT = Row("fall_back", "rate_limit", "The account's quota or credit at the model's provider is used up")

BY_CODE: Mapping[str, Row] = {
    "insufficient_quota": OUT_OF_CREDIT,
    "billing_hard_limit_reached": OUT_OF_CREDIT,
    "billing_not_active": OUT_OF_CREDIT,
    "Arrearage": OUT_OF_CREDIT,
    "AllocationQuota.FreeTierOnly": OUT_OF_CREDIT,
    "contract_spend_limit_reached": OUT_OF_CREDIT,
    "enforced_spend_limit_reached": OUT_OF_CREDIT,
    "billing_error": OUT_OF_CREDIT,
    "organization_on_hold": _NO_ACCOUNT,
    "organization_type_not_supported": _NO_ACCOUNT,
    "parent_organization_required": _NO_ACCOUNT,
    "cmek_key_disabled": _NO_ACCOUNT,
    "cmek_key_network_blocked": _NO_ACCOUNT,
    "invalid_api_key": LOCKED_OUT,
    "model_not_found": _NO_MODEL,
    "model_not_supported": _NO_MODEL,
}
"""Codes that say more than the status they come with: a quota arrives as 429, yet no waiting helps."""

STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 529,
}
"""The status of an error that arrives inside a stream, whose own HTTP status is 200."""
