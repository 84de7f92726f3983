"""Log lines as JSON: fields for whoever gathers them, no words of people, models and tools, no secrets."""

import io
import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from longhaul.activities.masker import Masker
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.telemetry.attempts import class_of
from longhaul.activities.telemetry.log_lines import JsonLines, about, fields
from longhaul.activities.worker_output import mask_logs
from longhaul.starter.telemetry.metrics import BadTelemetrySetting
from longhaul.starter.telemetry.switches import LogsWanted, logs_wanted

SECRET = "sk-tide-table-4711"
BADLY_FILLED = ("not a number",)


class Written:
    """A logger of its own, and the lines that it wrote."""

    def __init__(self, secrets: dict[str, str] | None = None) -> None:
        self._sink = io.StringIO()
        self.log = logging.Logger("activities.run_tool", logging.DEBUG)
        handler = logging.StreamHandler(self._sink)
        handler.setFormatter(JsonLines())
        self.log.addHandler(handler)
        mask_logs(self.log, Masker(secrets or {}))

    def line(self) -> dict[str, Any]:
        (line,) = self._sink.getvalue().splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


def test_a_line_says_when_how_bad_and_from_where() -> None:
    written = Written()

    written.log.warning("only the first %s skills are used", 20)

    line = written.line()
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "WARNING", "logger": "activities.run_tool", "message": "only the first 20 skills are used"}


def test_names_are_told_and_sentences_are_not() -> None:
    written = Written()

    written.log.warning("tool %s of %s said: %s", "Read", "scripted:sea", "greet the walrus")

    assert written.line()["message"] == "tool Read of scripted:sea said: …"


def test_of_an_exception_its_kind_and_place_are_told_and_never_its_words() -> None:
    written = Written()
    try:
        int("greet the walrus")
    except ValueError as error:
        written.log.error("the hook failed: %s\nand more: greet the walrus", error, exc_info=error)  # noqa: TRY400  its words too

    line = written.line()
    assert (line["message"], line["error_type"]) == ("the hook failed: ValueError", "ValueError")
    assert line["error_at"][-1].endswith("test_of_an_exception_its_kind_and_place_are_told_and_never_its_words")
    assert "walrus" not in json.dumps(line)


def test_every_line_within_an_attempt_has_its_names() -> None:
    written = Written()

    with about({"session": "shore", "call": "c-7"}):
        written.log.info("attempt ended", extra=fields(seconds=0.25, state="success", model=None))

    line = written.line()
    assert (line["session"], line["call"], line["seconds"], line["state"]) == ("shore", "c-7", 0.25, "success")
    assert "model" not in line


def test_what_the_sdk_knows_of_a_workflow_is_told_by_name() -> None:
    written = Written()

    written.log.error("it failed", extra={"temporal_workflow": {"workflow_id": "longhaul/coder/ana/shore", "x": {}}})

    line = written.line()
    assert (line["agent"], line["user"], line["session"]) == ("coder", "ana", "shore")
    assert "temporal_workflow" not in line


def test_of_the_sdks_own_lines_the_run_is_told_and_no_other_field() -> None:
    written = Written()
    told = SimpleNamespace(fields={"run_id": "0199-abc", "failure": "the walrus said no"})

    written.log.warning("[sdk_core] Failing workflow task", extra={"temporal_log": told})

    line = written.line()
    assert (line["message"], line["run_id"]) == ("[sdk_core] Failing workflow task", "0199-abc")
    assert "walrus" not in str(line)


def test_a_secret_is_masked_and_the_line_stays_json() -> None:
    written = Written({"TIDE": SECRET})

    with about({"session": SECRET, "agent": 'a "quoted" one'}):
        written.log.warning("asked for %s", SECRET)

    line = written.line()
    assert (line["session"], line["message"]) == ("[secret TIDE]", "asked for [secret TIDE]")


def test_a_line_that_was_badly_made_is_better_than_none() -> None:
    written = Written()

    written.log.warning("%d of %s", *BADLY_FILLED)

    assert written.line()["message"] == "%d of %s"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("", ("WARNING", False)),
        ("INFO", ("INFO", False)),
        ("json", ("INFO", True)),
        ("json:debug", ("DEBUG", True)),
    ],
)
def test_one_setting_names_form_and_level(given: str, wanted: tuple[str, bool]) -> None:
    assert logs_wanted({"LONGHAUL_LOG": given}) == LogsWanted(*wanted)


@pytest.mark.parametrize("given", ["loud", "xml", "xml:info", "json:loud"])
def test_a_setting_that_is_not_known_is_a_sentence(given: str) -> None:
    with pytest.raises(BadTelemetrySetting, match=f"LONGHAUL_LOG: '{given}' is not known; set debug"):
        logs_wanted({"LONGHAUL_LOG": given})


def test_a_failure_is_told_by_its_class() -> None:
    assert class_of(failed_for_good("rate_limited", "Slow down.")) == "rate_limited"
    assert class_of(KeyError("walrus")) == "KeyError"
