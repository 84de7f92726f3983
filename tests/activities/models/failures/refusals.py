"""Refusals in the words of real providers, and what each of them means. Looked up on 2026-11-23."""
# ruff: noqa: E501  The words are quoted as they are.

from typing import Any

from longhaul.activities.models.failures.error_meanings import Means

SENT: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be kind."}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See"},
                {"type": "image", "source": {"type": "base64", "data": "FIRST"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "tool_use"}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "content": [
                        {"type": "text", "text": "ok"},
                        {"type": "image", "source": {"type": "base64", "data": "SECOND"}},
                    ],
                },
                {"type": "document", "source": {"type": "base64", "data": "THIRD"}},
                {"type": "image", "source": {"type": "url", "url": "https://x.example/4.png"}},
            ],
        },
    ],
}
"""To Anthropic."""
ASKED: dict[str, Any] = {
    "input": [
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,FIRST"}]},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"},
        {
            "type": "function_call_output",
            "output": [{"type": "input_file", "file_data": "data:application/pdf;base64,SECOND"}],
        },
    ]
}
"""To OpenAI's Responses API."""
CHATTED: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,FIRST"}},
            ],
        },
    ]
}
"""To Chat Completions."""

Row = tuple[str, dict[str, Any], int, str, Means | None, set[str]]
REFUSALS: list[Row] = [
    # platform.claude.com/docs/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation
    (
        "bound",
        SENT,
        400,
        'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
        "thinking",
        set(),
    ),
    # github.com/anthropics/claude-code/issues/10627
    ("signature", SENT, 400, "messages.1.content.0: Invalid `signature` in `thinking` block", "thinking", set()),
    # github.com/znlsl/Antigravity2Api/issues/14
    (
        "expected",
        SENT,
        400,
        "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block",
        "thinking",
        set(),
    ),
    # github.com/anthropics/claude-code/issues/63284
    (
        "modified",
        SENT,
        400,
        "messages.3.content.8: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        "thinking",
        set(),
    ),
    # github.com/openai/codex/issues/8119
    (
        "encrypted",
        ASKED,
        400,
        "invalid_encrypted_content The encrypted content gAAA...c90= could not be verified.",
        "thinking",
        set(),
    ),
    (
        "orphan",
        ASKED,
        400,
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "thinking",
        set(),
    ),
    # docs.apiyi.com/en/faq/gemini-thought-signature-missing
    ("Gemini's signature", CHATTED, 400, "Invalid thought signature.", "thinking", set()),
    ("a corrupt one", CHATTED, 400, "Corrupted thought signature.", "thinking", set()),
    # Servers that send reasoning under a name that they do not take.
    (
        "reasoning, Groq",
        CHATTED,
        400,
        "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
        "thinking",
        set(),
    ),
    ("reasoning, vLLM", CHATTED, 400, "Unexpected field 'reasoning' in message 2", "thinking", set()),
    (
        "reasoning, pydantic",
        CHATTED,
        422,
        "[{'type': 'extra_forbidden', 'loc': ['body', 'messages', 2, 'assistant', 'reasoning_content'], 'msg': 'Extra inputs are not permitted'}]",
        "thinking",
        set(),
    ),
    # github.com/anthropics/claude-code/issues/6175
    ("process", SENT, 400, "Could not process image", "attachments", set()),
    # github.com/anthropics/claude-code/issues/12351
    (
        "pixels",
        SENT,
        400,
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
        "these",
        {"FIRST"},
    ),
    # portkey.ai/error-library/image-size-error-10499
    (
        "5 MB",
        SENT,
        400,
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5591868 bytes > 5242880 bytes",
        "these",
        {"FIRST"},
    ),
    (
        "in a result",
        SENT,
        400,
        "messages.2.content.0.tool_result.content.1.image.source.base64: The image was specified using the image/png media type, but the image appears to be a image/jpeg image",
        "these",
        {"SECOND"},
    ),
    (
        "pdf",
        SENT,
        400,
        "messages.2.content.1.pdf.source.base64.data: The PDF specified was not valid.",
        "these",
        {"THIRD"},
    ),
    (
        "address",
        SENT,
        400,
        "messages.2.content.2.image.source.url: Unable to download the file. Please verify the URL and try again.",
        "these",
        {"https://x.example/4.png"},
    ),
    (
        "address, unnamed",
        SENT,
        400,
        "Unable to download the file. Please verify the URL and try again.",
        "attachments",
        set(),
    ),
    (
        "a message",
        SENT,
        400,
        "messages.2: this can't be taken",
        "these",
        {"SECOND", "THIRD", "https://x.example/4.png"},
    ),
    # developers.openai.com, "Images and vision", and github.com/ijwfly/chatgpt-tg/issues/14
    (
        "not valid",
        ASKED,
        400,
        "input The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg'].",
        "attachments",
        set(),
    ),
    ("Invalid image", CHATTED, 400, "Invalid image.", "attachments", set()),
    (
        "named by OpenAI",
        ASKED,
        400,
        "Invalid 'input[0].content[0].image_url'. Expected a base64-encoded data URL with an image MIME type.",
        "these",
        {"FIRST"},
    ),
    ("a file", ASKED, 400, "input[2].output[0].file_data Invalid file data: could not be parsed", "these", {"SECOND"}),
    ("named in chat", CHATTED, 400, "messages.[1].content.[1].image_url Invalid base64 image_url.", "these", {"FIRST"}),
    (
        "downloading",
        CHATTED,
        400,
        "url invalid_image_url Error while downloading https://x.example/4.png.",
        "attachments",
        set(),
    ),
    # github.com/google-gemini/gemini-cli/issues/27244
    ("gemini", CHATTED, 400, "Provided image is not valid.", "attachments", set()),
    # github.com/roboflow/awesome-openai-vision-api-experiments/issues/11
    (
        "certain models",
        CHATTED,
        400,
        "messages.[1].content.[1].type Invalid content type. image_url is only supported by certain models.",
        "images at all",
        set(),
    ),
    (
        "deepseek",
        CHATTED,
        400,
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`",
        "images at all",
        set(),
    ),
    ("openrouter", CHATTED, 404, "No endpoints found that support image input", "images at all", set()),
    (
        "llama.cpp",
        CHATTED,
        500,
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "images at all",
        set(),
    ),
    ("vllm", CHATTED, 400, "At most 0 image(s) may be provided in one prompt.", "images at all", set()),
    ("vllm, no eyes", CHATTED, 400, "qwen3 is not a multimodal model", "images at all", set()),
    ("groq", CHATTED, 400, "messages[1].content must be a string", "images at all", set()),
    # Refusals of something else, which leaving content out would not help against.
    ("a tool", SENT, 400, "tools.3.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", None, set()),
    ("a field", SENT, 400, "temperature: Input should be less than or equal to 1", None, set()),
    ("a budget", SENT, 400, "max_tokens must be greater than thinking.budget_tokens", None, set()),
    (
        "off",
        SENT,
        400,
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive"',
        None,
        set(),
    ),
    (
        "a policy",
        CHATTED,
        400,
        "The response was filtered due to the prompt triggering the content management policy.",
        None,
        set(),
    ),
    (
        "deepseek's reasoning",
        CHATTED,
        400,
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        None,
        set(),
    ),
    # github.com/earendil-works/pi/pull/4178
    (
        "Kimi's reasoning",
        CHATTED,
        400,
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        None,
        set(),
    ),
    (
        "an effort",
        CHATTED,
        400,
        "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.",
        None,
        set(),
    ),
    ("a key", SENT, 401, "messages.0.content.1: Could not process image", None, set()),
    ("too often", SENT, 429, "Could not process image", None, set()),
    ("a failure", SENT, 500, "Could not process image", None, set()),
    ("a path to nowhere", SENT, 400, "messages.77.content.1: odd", None, set()),
]
