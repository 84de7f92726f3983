"""What the measurements of interrupts, first tokens and faults write down."""

import json
from pathlib import Path

import pytest

from benchmarks import fault_ledger, first_token, interrupting, order_faults, sandbox_start
from benchmarks.fault_ledger import SERVER, WORKER, Fault, SessionState
from benchmarks.pages import p95, publish, spread
from tests.e2e.crash.crash_full import Verdict

TWENTY = [number / 10 for number in range(20, 0, -1)]


def test_the_tail_is_what_one_in_twenty_exceeds() -> None:
    assert p95(TWENTY) == 1.9
    assert p95([0.3]) == 0.3
    assert spread(TWENTY, 1) == ["1.1", "1.9", "2.0"]


def test_a_section_and_its_raw_rows_are_published(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks.md").write_text("# How fast\n")

    publish(tmp_path, "tides", "## Tides", [{"high": 3}, {"high": 4}])

    assert "<!-- tides: begin -->\n## Tides\n<!-- tides: end -->" in (tmp_path / "benchmarks.md").read_text()
    raw = (tmp_path / "benchmarks" / "tides.json").read_text()
    assert json.loads(raw) == [{"high": 3}, {"high": 4}]
    assert len(raw.splitlines()) == 4


def test_interrupts_are_told_with_their_target() -> None:
    figures = interrupting.Figures(otherwise=1)
    figures.seconds[interrupting.COMMAND] += TWENTY

    assert interrupting.rows(figures) == [(interrupting.COMMAND, "1.05", "1.90", "2.00", "20", "p95 ≤ 0.5")]
    assert interrupting.section(figures).endswith("Replies that did not end as interrupted: 1.")


def test_first_tokens_are_told_by_stream() -> None:
    found = {"Redis": first_token.Latencies([2.0], [1.0, 3.0], missed=4)}

    assert first_token.rows(found) == [
        ("Redis", "first", "2.0", "2.0", "2.0", "1", "4", "p50 ≤ 5"),
        ("Redis", "later", "2.0", "3.0", "3.0", "2", "4", "p50 ≤ 5"),
    ]


@pytest.mark.proves("X13")
def test_the_ledger_counts_faults_and_what_they_did() -> None:
    ledger = SessionState()
    ledger.faults += [
        Fault(WORKER, "7 activity task started", 5, 1.0),
        Fault(WORKER, "", 4, 2.0),
        Fault(SERVER, "", 3, 3.0),
    ]
    ledger.verdicts += [
        Verdict("calm"),
        Verdict("unsure", unknown_outcomes=("send", "sign")),
        Verdict("broken", lost="no result of ['put']", doubled=("send",), unsaid=("sign",)),
    ]

    assert fault_ledger.rows(ledger) == [
        (WORKER, "1", "1"),
        (fault_ledger.STOPPED, "0", "0"),
        (SERVER, "0", "1"),
    ]
    assert fault_ledger.judged(ledger) == ("3", "9", "1", "1", "2", "1")
    assert [verdict.session for verdict in ledger.broken()] == ["broken"]
    assert [row["is"] for row in ledger.rows()] == ["fault"] * 3 + ["session"] * 3
    assert "--random 2 --seed 7" in fault_ledger.section(ledger, 7)


@pytest.mark.proves("X13")
def test_faults_in_an_application_are_counted_by_whose_event_they_followed() -> None:
    ledger = SessionState()
    ledger.faults += [
        Fault(WORKER, "order: 3 workflow task started", 1, 1.0),
        Fault(WORKER, "session: 9 activity task started", 2, 2.0),
        Fault(SERVER, "session: 9 activity task started", 2, 3.0),
    ]
    paid_twice = Verdict("o2", doubled=("issue_refund",), unsaid=("issue_refund",))
    ledger.verdicts += [Verdict("o1", unknown_outcomes=("issue_refund",)), paid_twice, Verdict("o3", lost="no answer")]

    said = order_faults.section(ledger, 12)

    assert order_faults.rows(ledger) == [(WORKER, "1", "1"), (SERVER, "0", "1")]
    assert order_faults.judged(ledger) == ("3", "1", "1", "1", "1")
    assert "`python -m benchmarks.order_faults --step 12`" in said
    assert "benchmarks/order_faults.json" in said


def test_the_sandbox_is_told_by_what_it_adds() -> None:
    found = {
        "none": sandbox_start.Took(0, [20.0, 30.0, 40.0], [10.0, 10.0, 12.0]),
        "reading": sandbox_start.Took(18, [33.0, 36.0, 50.0], [9.0, 12.5, 14.0]),
    }

    said = sandbox_start.section(found)

    assert "| none | 0 | 30.0 | 40.0 | +0.0 (1.00) | 10.0 | 12.0 | +0.0 (1.00) |" in said
    assert "| reading | 18 | 36.0 | 50.0 | +6.0 (1.20) | 12.5 | 14.0 | +2.5 (1.25) |" in said
    assert "`true` in bash, 3\nruns of each way" in said
