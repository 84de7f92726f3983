"""How servers say that a conversation is too long for the model, each in its own words and form. Looked up on
2026-11-23 and 24."""
# ruff: noqa: E501  The words are quoted as they are.

from tests.activities.models.failures.server_words import (
    CLAUDE,
    RESPONSES,
    ServerAnswer,
    claude,
    flat,
    gemini,
    openai,
    page,
    within,
)

VLLM = "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion."

TOO_LONG = [
    ServerAnswer("Anthropic", 400, claude("prompt is too long: 213462 tokens > 200000 maximum"), CLAUDE),
    ServerAnswer(
        "Anthropic, with the answer",
        400,
        claude(
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"
        ),
        CLAUDE,
    ),
    ServerAnswer("Anthropic, bytes", 413, claude("Request exceeds the maximum size", "request_too_large"), CLAUDE),
    ServerAnswer("Vertex, Claude", 400, claude("Prompt is too long"), CLAUDE),
    ServerAnswer("Bedrock", 400, claude("Input is too long for requested model."), CLAUDE),
    ServerAnswer(
        "Bedrock, by a gateway",
        400,
        {
            "message": "The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum",
            "__type": "ValidationException",
        },
    ),
    ServerAnswer(
        "Bedrock, Nova",
        400,
        openai(
            "An error occurred (ValidationException) when calling the ConverseStream operation: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."
        ),
    ),
    ServerAnswer("Bedrock, bytes", 400, openai("too many total text bytes: 11059200 > 9000000")),
    ServerAnswer("OpenAI", 400, openai("…", "context_length_exceeded")),
    ServerAnswer(
        "OpenAI, Responses",
        400,
        openai("Your input exceeds the context window of this model. Please adjust your input and try again."),
        RESPONSES,
    ),
    ServerAnswer(
        "OpenAI, a minute's tokens",
        429,
        openai(
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 41000. The input or output tokens must be reduced in order to run successfully.",
            "rate_limit_exceeded",
        ),
    ),
    ServerAnswer(
        "OpenAI, a message",
        400,
        openai(
            "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.",
            "string_above_max_length",
        ),
    ),
    ServerAnswer(
        "Azure",
        400,
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 400012 tokens. Please reduce the length of the messages."
        ),
    ),
    ServerAnswer(
        "Gemini", 400, gemini("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).")
    ),
    ServerAnswer(
        "Gemini, without a number",
        400,
        gemini("The input token count exceeds the maximum number of tokens allowed (1048576)."),
    ),
    ServerAnswer("Gemini, bytes", 400, gemini("Request payload size exceeds the limit: 20971520 bytes.")),
    ServerAnswer(
        "Vertex, Gemini",
        400,
        gemini(
            "Unable to submit request because the input token count is 36549 but model only supports up to 32767. Reduce the input token count and try again."
        ),
    ),
    ServerAnswer("vLLM", 400, flat(VLLM)),
    ServerAnswer(
        "vLLM, the prompt alone",
        400,
        flat(
            "The decoder prompt (length 10127) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens."
        ),
    ),
    ServerAnswer(
        "vLLM, newer",
        400,
        openai(
            "You passed 9001 input tokens and requested 1024 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7168 tokens. Please reduce the length of the input prompt.",
            400,
        ),
    ),
    ServerAnswer(
        "SGLang", 400, flat("The input (61709 tokens) is longer than the model's context length (40960 tokens).")
    ),
    ServerAnswer(
        "SGLang, with the answer",
        400,
        flat(
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 131808 tokens from the input messages and 8192 tokens for the completion."
        ),
    ),
    ServerAnswer("SGLang, newer", 400, flat("Input length (265330) exceeds model's maximum context length (262144).")),
    ServerAnswer(
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9000,
                "n_ctx": 4096,
            }
        },
    ),
    ServerAnswer(
        "llama.cpp, older",
        500,
        openai(
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            500,
        ),
    ),
    ServerAnswer("llama.cpp, in the midst", 500, openai("Context size has been exceeded.", 500)),
    ServerAnswer("llama.cpp, a slot", 500, openai("input is larger than the max context size. skipped", 500)),
    ServerAnswer(
        "LM Studio",
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 16262>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."
        },
    ),
    ServerAnswer(
        "LM Studio, older",
        400,
        {
            "error": "Trying to keep the first 4630 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."
        },
    ),
    ServerAnswer("Ollama", 400, openai("prompt too long; exceeded max context length by 120 tokens")),
    ServerAnswer("Ollama, its own API", 400, {"error": "the input length exceeds the context length"}),
    ServerAnswer(
        "TGI",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 40000 `inputs` tokens and 8192 `max_new_tokens`",
            "error_type": "validation",
        },
    ),
    ServerAnswer(
        "TGI, the prompt alone",
        422,
        {
            "error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168",
            "error_type": "validation",
        },
    ),
    ServerAnswer(
        "Together", 422, openai("The input (140000 tokens) is longer than the model's context length (131072 tokens).")
    ),
    ServerAnswer(
        "xAI",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        },
    ),
    ServerAnswer(
        "Kimi", 400, openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)")
    ),
    ServerAnswer("Kimi, older", 400, openai("model max length exceeded, max length:8192")),
    ServerAnswer("MiniMax", 400, openai("invalid params, context window exceeds limit (2013)", "bad_request_error")),
    ServerAnswer(
        "MiniMax, its own API",
        400,
        {"id": "0", "base_resp": {"status_code": 2013, "status_msg": "invalid params, context window exceeds limit"}},
    ),
    ServerAnswer("GLM", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    ServerAnswer("GLM, in Chinese", 400, {"error": {"code": "1261", "message": "Prompt 超长"}}),
    ServerAnswer(
        "LiteLLM",
        400,
        openai(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: BedrockException: Context Window Error - the text is over. Received Model Group=opus",
            "400",
        ),
    ),
    ServerAnswer(
        "LiteLLM, the other's answer within",
        400,
        openai(
            'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209353 tokens > 199999 maximum"}}',
            "400",
        ),
    ),
    ServerAnswer(
        "LiteLLM, before it asks",
        400,
        openai("litellm.ContextWindowExceededError: No models have context window large enough for this call.", "400"),
    ),
    ServerAnswer(
        "Copilot",
        400,
        openai("prompt token count of 93854 exceeds the limit of 90000", "model_max_prompt_tokens_exceeded"),
    ),
    ServerAnswer(
        "Copilot, by a proxy",
        400,
        'API error: {"error":{"message":"prompt token count of 93854 exceeds the limit of 90000","param":"","code":"","type":""}}',
    ),
    ServerAnswer(
        "Cohere",
        400,
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 140000. Try using a shorter prompt, a smaller max_tokens value, or enabling prompt truncating."
        },
    ),
    ServerAnswer(
        "Cohere, newer",
        400,
        {"id": "1", "message": "size limit exceeded by 11326 tokens. Try using shorter or fewer inputs."},
    ),
    ServerAnswer(
        "Mistral",
        400,
        {
            "object": "error",
            "message": "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
            "type": "invalid_request_prompt",
            "param": None,
            "code": "3051",
        },
    ),
    ServerAnswer(
        "Groq",
        400,
        openai("Please reduce the length of the messages or completion.", "context_length_exceeded", param="messages"),
    ),
    ServerAnswer(
        "Groq, a minute's tokens",
        413,
        openai(
            "Request too large for model `kimi-k2` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 10000, Requested 15088, please reduce your message size and try again.",
            "rate_limit_exceeded",
        ),
    ),
    ServerAnswer(
        "Cerebras",
        400,
        {
            "message": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        },
    ),
    ServerAnswer("DeepSeek", 400, openai(VLLM, "invalid_request_error")),
    ServerAnswer(
        "Fireworks", 400, openai("The prompt is too long: 140000, model maximum context length: 131071", param="prompt")
    ),
    ServerAnswer(
        "OpenRouter",
        400,
        {
            "error": {
                "message": "This endpoint's maximum context length is 262000 tokens. However, you requested about 263390 tokens (658 of text input, 732 of tool input, 262000 in the output).",
                "code": 400,
                "metadata": {"provider_name": None},
            }
        },
    ),
    ServerAnswer(
        "OpenRouter, Poolside",
        400,
        openai("Input length 300000 exceeds the maximum allowed input length of 262144 tokens.", 400),
    ),
    ServerAnswer("OpenRouter, the other's answer within", 400, within({"error": {"message": VLLM, "code": 400}})),
    ServerAnswer(
        "OpenRouter, a list within",
        400,
        within(gemini("The input token count exceeds the maximum number of tokens allowed (1048576).")),
    ),
    ServerAnswer(
        "DashScope",
        400,
        openai(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            "invalid_parameter_error",
        ),
    ),
    ServerAnswer(
        "Ark",
        400,
        openai("Total tokens of image and text exceed max message tokens. Request id: 02", "InvalidParameter"),
    ),
    ServerAnswer(
        "SiliconFlow",
        400,
        {
            "code": 20015,
            "message": "The parameter is invalid: length of prompt_tokens (135000) must be less than max_seq_len (131072).",
            "data": None,
        },
    ),
    ServerAnswer(
        "SiliconFlow, newer",  # github.com/leookun/cursor-byok/issues/129
        400,
        {
            "code": 20015,
            "message": "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.",
            "data": None,
        },
    ),
    ServerAnswer(
        "GitHub Models",  # github.com/eslint/tsc-meetings/pull/593
        413,
        openai("Request body too large for gpt-4o model. Max size: 8000 tokens.", "tokens_limit_reached"),
    ),
    ServerAnswer(
        "a gateway, with the answer",
        400,
        openai(
            "The estimated number of input and maximum output tokens (24553) exceeded this model context window limit (24000).",
            "400",
        ),
    ),
    ServerAnswer("a gateway, in two words", 400, openai("Request size exceeds model context window", "400")),
    ServerAnswer(
        "vLLM, of its own setting", 400, openai("The prompt (length 9000) exceeds the max_model_len (8192)", "400")
    ),
    ServerAnswer("a gateway in China", 400, openai("上下文长度超出限制, 请压缩上下文后重试", "400")),
    ServerAnswer("another one", 400, openai("输入内容超过模型的最大长度", "400")),
    ServerAnswer(
        "watsonx",
        400,
        {
            "errors": [
                {
                    "code": "invalid_input_argument",
                    "message": "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model",
                }
            ],
            "trace": "1",
            "status_code": 400,
        },
    ),
    ServerAnswer(
        "TensorRT-LLM",
        400,
        openai("The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)"),
    ),
    ServerAnswer("TabbyAPI", 400, {"detail": "Prompt length 9000 is greater than max_seq_len 8192"}),
    ServerAnswer("ds4", 400, openai("Prompt has 70000 tokens, but the configured context size is 65536 tokens", "400")),
    ServerAnswer("a proxy before it, in HTML", 413, page("413 Request Entity Too Large")),
    ServerAnswer("a proxy before it, in words", 413, "Payload Too Large"),
]
"""A shorter conversation helps."""
