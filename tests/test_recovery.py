"""What the measurement of recovery makes of its figures."""

from benchmarks.recovery import TARGETS, Figures, rows, section

MODEL = "worker killed inside a model call"


def figures() -> Figures:
    """Twenty rounds; a call of the model took 0.1 s more in each."""
    seconds = {name: [1.0] * 20 for name in TARGETS} | {MODEL: [number / 10 for number in range(20, 0, -1)]}
    return Figures(seconds=seconds, mib=[90.0, 100.0, 95.0], lost=1)


def test_each_figure_has_its_median_its_tail_and_its_target() -> None:
    found = {row[0]: row[1:] for row in rows(figures())}

    assert found[MODEL] == ("1.05", "1.90", "2.00", "20", "≤ 4")
    assert found["worker start to first poll"] == ("1.00", "1.00", "1.00", "20", "≤ 1")


def test_one_round_is_enough_for_a_row() -> None:
    once = Figures(seconds={name: [0.5] for name in TARGETS}, mib=[90.0])

    assert {row[1:5] for row in rows(once)} == {("0.50", "0.50", "0.50", "1")}


def test_the_page_says_what_was_lost_and_what_a_worker_holds() -> None:
    assert section(figures()).endswith(
        "A started worker holds 95 MiB (target: 120). Replies that did not end as they should: 1."
    )
