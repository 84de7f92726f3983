"""The parts that are installed only when they are asked for, as `pip install 'longhaul-agents[worker,sql]'`."""

from longhaul.agent.plain.errors import BadSetup

EXTRAS: dict[str, tuple[str, ...]] = {
    "ai": ("groq", "mistralai", "pydantic_ai"),
    "azure": ("azure",),
    "bedrock": ("boto3", "botocore"),
    "cohere": ("cohere",),
    "cli": ("prompt_toolkit", "rich", "typer"),
    "encryption": ("cryptography",),
    "knowledge": ("pypdf",),
    "mcp": ("mcp", "mcp_types"),
    "serve": ("jinja2", "markdown_it", "markupsafe", "nh3", "python_multipart", "starlette", "uvicorn"),
    "sql": ("psycopg", "pymysql", "sqlalchemy"),
    "telemetry": ("opentelemetry",),
    "vectors": ("numpy",),
    "worker": (
        "anthropic", "httpx2", "jsonschema", "openai", "pythonjsonlogger", "referencing",
        "tiktoken", "tree_sitter", "tree_sitter_bash", "uvloop", "yaml",
    ),
}  # fmt: skip
"""By extra the modules that come with it; `worker` and `serve` bring `cli` along, `worker` also `telemetry`, `ai`,
`azure`, `bedrock` and `vertex` all of `worker`, and `cohere` all of `ai`. That of `vertex` is a part of a package that
others share."""


class MissingExtra(BadSetup, ImportError):
    """A part is not installed; the sentence names the extra that has it."""


def missing(error: ModuleNotFoundError) -> ModuleNotFoundError | MissingExtra:
    """The same error, or one that says which extra has that module."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            return MissingExtra(
                f"{module!r} is not installed; it comes with an extra: pip install 'longhaul-agents[{extra}]'"
            )
    return error
