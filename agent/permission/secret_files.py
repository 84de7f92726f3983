"""Names of files that hold secrets: the tables, and what they say of one path."""

import re

from longhaul.agent.plain.word_sets import names

_SECRET_FILES = names(
    ".netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .envrc .env .vault-token .htpasswd .s3cfg"
    " .boto .dockercfg .terraformrc .bash_history .zsh_history .python_history .node_repl_history"
    " .psql_history .mysql_history .rediscli_history .lesshst .xauthority credentials.json secrets.json"
    " secrets.yaml secrets.yml secrets.toml client_secret.json service-account.json"
    " application_default_credentials.json credentials.tfrc.json local.settings.json wp-config.php"
)
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".password-store"})
KEYRINGS = frozenset({".gnupg", ".password-store"})
"""Folders in which every file is a secret."""
_PRIVATE_KEYS = frozenset({"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"})
_SECRET_ENDINGS = (
    ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".ppk", ".tfstate", ".tfvars", ".ovpn"
)  # fmt: skip
_SECRET_IN_FOLDER = frozenset(
    {
        ("etc", "shadow"),
        ("etc", "gshadow"),
        (".aws", "credentials"),
        (".docker", "config.json"),
        (".kube", "config"),
        (".azure", "msal_token_cache.json"),
        ("gh", "hosts.yml"),
        ("gcloud", "credentials.db"),
        ("gcloud", "access_tokens.db"),
        (".cargo", "credentials.toml"),
        (".cargo", "credentials"),
        (".gem", "credentials"),
        (".m2", "settings.xml"),
        (".git", "credentials"),
        (".git", "config"),
    }
)
_PROCESS_SECRETS = frozenset({"environ", "mem", "cmdline", "maps", "auxv", "stack"})
_ENV_FILE = re.compile(r"\.env(?:[._-].+)?|[\w.-]+\.env", re.ASCII)
_HARMLESS_ENV = re.compile(
    r".*[._-](?:example|sample|template|dist|defaults?|schema)(?:\.env)?|.*\.d\.ts|.*\.[jt]s", re.ASCII
)


def is_secret(parts: tuple[str, ...]) -> bool:
    """Whether a path of these parts, in lower case, may hold secrets by its name."""
    name, folder = parts[-1], parts[-2] if len(parts) > 1 else ""
    if "proc" in parts[:2]:
        return name in _PROCESS_SECRETS
    if name in _SECRET_FOLDERS:
        return True
    if folder == ".ssh":
        return not name.endswith(".pub") and name not in ("known_hosts", "config")
    in_keyring = not KEYRINGS.isdisjoint(parts[:-1])
    by_name = name in _SECRET_FILES or name in _PRIVATE_KEYS or name.endswith(_SECRET_ENDINGS) or is_env_file(name)
    return in_keyring or (folder, name) in _SECRET_IN_FOLDER or by_name


def secret_globs() -> list[str]:
    """Globs (as in .gitignore) of what a search through a folder leaves out: read by name, these would ask."""
    names = [
        *sorted(_SECRET_FILES | _PRIVATE_KEYS),
        ".env[._-]*",
        "*.env",
        *(f"*{ending}" for ending in _SECRET_ENDINGS),
    ]
    folders = [f"**/{folder}/**" for folder in (".gnupg", ".password-store", ".ssh")]
    return [*names, *("/".join(("**", *pair)) for pair in sorted(_SECRET_IN_FOLDER)), *folders]


def is_env_file(name: str) -> bool:
    return _ENV_FILE.fullmatch(name) is not None and _HARMLESS_ENV.fullmatch(name) is None
