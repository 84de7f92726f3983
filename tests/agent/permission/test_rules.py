"""How rules match: path patterns and command words."""

import pytest

from longhaul.agent.permission.rule_matching import allow_matches, deny_matches, path_matches, written


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/proj/**", "/proj/a/b", True),
        ("/proj/**", "/proj", True),
        ("/proj/**", "/proj-evil/a", False),
        ("/proj/*", "/proj/a", True),
        ("/proj/*", "/proj/a/b", False),
        ("/proj/*", "/proj", False),
        ("/proj/**/x", "/proj/x", True),
        ("/proj/**/x", "/proj/a/b/x", True),
        ("/proj/**/x", "/proj/a/bx", False),
        ("/proj/?.py", "/proj/a.py", True),
        ("/proj/?.py", "/proj/ab.py", False),
        ("/proj/?", "/proj//", False),
        ("/proj/[ab]", "/proj/a", False),
        ("/proj/[ab]", "/proj/[ab]", True),
        ("/proj/a.py", "/proj/axpy", False),
        ("/proj//a/./b", "/proj/a/b", True),
        ("/proj/x/../a", "/proj/a", True),
        ("/proj/a\n", "/proj/a", False),
        ("/proj/*", "/proj/a\nb", True),
        ("src/*", "/proj/src/a", True),
        ("src/*", "/other/src/a", False),
        ("./src/*", "/proj/src/a", True),
        ("**/.env", "/anywhere/.env", True),
        ("**", "/anywhere/at/all", True),
        ("~/.ssh/**", "/home/ana/.ssh/id", True),
        ("~/.ssh/**", "/root/.ssh/id", True),
        ("~/.ssh/**", "/home/ana/x/.ssh/id", False),
        ("/PROJ/a", "/proj/a", False),
        ("/", "/", True),
    ],
)
def test_path_patterns(pattern: str, path: str, matches: bool) -> None:
    assert path_matches(pattern, path, "/proj") is matches


@pytest.mark.parametrize(
    ("rule", "command", "allows", "denies"),
    [
        ("git add:*", "git add x", True, True),
        ("git add:*", "git add", True, True),
        ("git add:*", "git added", False, False),
        ("git add", "git add", True, True),
        ("git add", "git add x", False, True),
        ("rm:*", "/bin/rm x", False, True),
        ("rm:*", "rmdir x", False, False),
        ("git push:*", "git -C a push", False, True),
        ("rm -rf:*", "rm -fr x", False, True),
        ("rm -rf:*", "rm -r x", False, False),
        ("rm -rf:*", "rm --recursive --force x", False, True),
        ("rm -rf:*", "rm --rec -f x", False, True),
        ("rm -rf:*", "rm -Rf x", False, True),
        ("rm -rf:*", "rm --recursive x", False, False),
        ("rm --force:*", "rm -vf x", False, True),
        ("git add -A:*", "git add --all", False, True),
        ("git push --force:*", "git push -f origin", False, True),
        ("git push --force:*", "git push --force-with-lease", False, False),
        ("chmod -R:*", "chmod --recursive 777 /", False, True),
        ("npm publish --force", "npm publish --force=yes", False, True),
        (":*", "anything at all", True, True),
        ("", "anything at all", False, False),
        ("git *", "git add", False, False),
        ("'open", "'open", True, True),
        ("git   add:*", "git add x", True, True),
    ],
)
def test_command_rules(rule: str, command: str, allows: bool, denies: bool) -> None:
    words = tuple(command.split())

    assert (allow_matches(rule, words), deny_matches(rule, words)) == (allows, denies)


@pytest.mark.parametrize(
    "words", [("git", "commit", "-m", "a b"), (">", "/proj/a b"), ("A=1", "make"), ("A=1 2", "x"), ("a;b",)]
)
def test_a_written_command_is_an_exact_rule_for_itself(words: tuple[str, ...]) -> None:
    assert allow_matches(written(words), words)
