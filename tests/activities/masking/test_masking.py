"""Secrets are cut out of text in every form in which programs print them, and nothing else is."""

import base64
import html
import io
import json
import logging
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import pytest

from longhaul.activities.masker import Masker
from longhaul.activities.worker_output import mask_logs

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
ODD = 'a"b\\nc/d e+f'
UMLAUTS = "pässwörd😀x"
PEM = "-----BEGIN KEY-----\nMIIEow+/=\nabcdefgh\n-----END"
LONG = base64.b64encode(bytes(number * 7 % 251 for number in range(2_400))).decode()
QUOTES = "p&ss<w\"rd'2026>'x'"
VALUES = {"token": TOKEN, "odd": ODD, "quotes": QUOTES, "umlauts": UMLAUTS, "pem": PEM, "long": LONG}


def forms(value: str) -> Iterator[str]:
    data = value.encode()
    yield from (value, value.upper(), value.lower(), json.dumps(value), json.dumps(json.dumps(value)))
    yield from (quote(value, safe=""), quote_plus(value), quote(quote(value, safe=""), safe=""), quote(value).lower())
    yield from ("".join(f"%{byte:02X}" for byte in data), "".join(f"\\x{byte:02x}" for byte in data))
    yield from (data.hex(), data.hex().upper(), data.hex(" "), data.hex(":"), ", ".join(f"0x{b:02x}" for b in data))
    yield from ("\n".join(value[at : at + 7] for at in range(0, len(value), 7)), "".join(f"\\{b:03o}" for b in data))
    yield from (html.escape(value), html.escape(value, quote=False), html.escape(value).replace("&#x27;", "&#39;"))
    yield from (saxutils.escape(value), saxutils.quoteattr(value), html.escape(value).replace("&#x27;", "&apos;"))
    yield from (shlex.quote(value), value.replace("'", "'\\''"), json.dumps(html.escape(value)))
    yield from (value.replace("'", "''"), value.replace('"', '""'), quote(html.escape(value)))
    for before in (b"", b"x", b"xy", b"xyz" * 20):
        whole = before + data + b"tail"
        yield from (base64.b64encode(whole).decode(), base64.urlsafe_b64encode(whole).decode())
        yield from (base64.encodebytes(whole).decode(), json.dumps(base64.encodebytes(whole).decode()))
        yield quote(base64.b64encode(whole).decode(), safe="")


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_secret_is_cut_out_in_every_form(value: str) -> None:
    masker = Masker({"KEY": value, "OTHER": "another secret"})

    wrong = [form for form in forms(value) if not cut_out(masker.masked(f"before {form} after"))]

    assert wrong == []


def cut_out(text: str) -> bool:
    return text.startswith("before ") and text.endswith(" after") and "[secret KEY]" in text


def test_other_text_stays_as_it_is() -> None:
    text = 'ghp_ and 16C7e42F 67 68 70 %67 \\u0067 a"b\\nc Z2hwXzE2 \n\r\n\\\\ secret'

    assert Masker(VALUES).masked(text) == text


def test_the_longer_one_of_two_is_named() -> None:
    masker = Masker({"SHORT": "swordfish", "LONG": "swordfish-and-chips"})

    assert masker.masked("swordfish, swordfish-and-chips") == "[secret SHORT], [secret LONG]"


def test_what_can_be_seen_but_not_cut_out_takes_its_line_along() -> None:
    deep = quote("".join(f"\\\\x{byte:02x}" for byte in TOKEN.encode()), safe="")

    masked = Masker({"KEY": TOKEN}).masked(f"fine\nodd: {deep}\nfine too")

    assert masked.split("\n")[0::2] == ["fine", "fine too"]
    assert "[secret KEY]" in masked.split("\n")[1]
    assert Masker({"KEY": TOKEN}).found(masked) == ""


def test_log_lines_are_masked_also_where_an_exception_says_it() -> None:
    written = io.StringIO()
    logger = logging.Logger("gate")
    logger.addHandler(logging.StreamHandler(written))
    mask_logs(logger, Masker({"KEY": TOKEN}))

    try:
        _ = dict[str, str]()[f"the gate took no {TOKEN}"]
    except KeyError:
        logger.exception("opening with %s failed", TOKEN.upper())

    assert "opening with [secret KEY] failed" in written.getvalue()
    assert "KeyError: 'the gate took no [secret KEY]'" in written.getvalue()
    assert TOKEN.lower() not in written.getvalue().lower()
