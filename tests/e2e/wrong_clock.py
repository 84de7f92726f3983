"""`longhaul …` on a machine whose clock is off: run as a module, with the hours and then the command's words."""

import datetime as dt
import sys

RIGHT = dt.datetime


class WrongClock(dt.datetime):
    """What the time is there."""

    OFF = dt.timedelta(hours=float(sys.argv[1]))

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
        return RIGHT.now(tz) + cls.OFF


def main() -> None:
    dt.datetime = WrongClock  # type: ignore[misc]
    # Now, for whatever was loaded before would have the right one.
    from longhaul.starter.cli import main as command  # noqa: PLC0415

    sys.argv = ["longhaul", *sys.argv[2:]]
    command.main()


if __name__ == "__main__":
    main()
