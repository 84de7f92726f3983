"""What an agent reads in a day, with what tiktoken counts of it: the yardstick for the estimator.

The numbers were counted with tiktoken 0.14 and the encodings' files; `test_tokens.py` counts again where they are.
"""
# ruff: noqa: RUF001  the texts are in the languages that they are in

import base64
import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    text: str
    o200k_base: int
    cl100k_base: int


SAMPLES: dict[str, Sample] = {
    "english": Sample(
        "The lighthouse keeper had not spoken to anyone since the autumn storms, and when the supply boat "
        "finally rounded the point he found that his voice had gone rough from disuse. He carried the crates "
        "up the stairs one at a time, counting under his breath: flour, lamp oil, two sacks of potatoes, a "
        "parcel of letters tied with string. Nobody had written to him in years, so the letters surprised "
        'him more than the visitors did. "You should come back with us," the captain said. "The light will '
        'be automatic by spring." He looked at the lamp for a long while before he answered.',
        122,
        123,
    ),
    "python": Sample(
        "import asyncio\n"
        "from dataclasses import dataclass, field\n"
        "\n"
        "\n"
        "@dataclass\n"
        "class Harbour:\n"
        '    """Ships at anchor, by name."""\n'
        "\n"
        "    capacity: int = 12\n"
        '    ships: dict[str, "Ship"] = field(default_factory=dict)\n'
        "\n"
        '    async def moor(self, ship: "Ship", *, timeout_seconds: float = 30.0) -> bool:\n'
        "        if len(self.ships) >= self.capacity:\n"
        '            raise HarbourFull(f"{ship.name!r} must wait: {self.capacity} ships are here")\n'
        "        async with asyncio.timeout(timeout_seconds):\n"
        "            await ship.drop_anchor()\n"
        "        self.ships[ship.name] = ship\n"
        "        return True\n",
        138,
        140,
    ),
    "json_log": Sample(
        '{"ts":"2026-03-14T09:26:53.589Z","level":"INFO","logger":"api.orders","msg":"request '
        'finished","status":200,"duration_ms":48.31,"path":"/v1/orders/88213/items","trace_id":"9f86d081884c7'
        'd659a2feaa0c55ad015"}\n'
        '{"ts":"2026-03-14T09:26:54.002Z","level":"WARN","logger":"db.pool","msg":"connection reset by peer, '
        'retrying","attempt":2,"host":"10.0.31.7","port":5432}\n'
        '{"ts":"2026-03-14T09:26:54.771Z","level":"ERROR","logger":"api.orders","msg":"upstream timed '
        'out","status":504,"duration_ms":30000.0,"user":{"id":70412,"roles":["admin","ops"],"active":true}}\n',
        200,
        198,
    ),
    "chinese": Sample(
        "灯塔看守人自从秋天的风暴以来没有和任何人说过话。补给船终于绕过海角的时候，他发现自己的声音因为长久不"
        "用而变得沙哑。他一次一箱地把货物搬上楼梯，低声数着：面粉、灯油、两袋土豆，还有一捆用绳子扎好的信。多"
        "年来没有人给他写过信，所以这些信比来访的人更让他吃惊。“你应该跟我们回去，”船长说，“到了春天，这座"
        "灯塔就会自动运行。”他看着那盏灯，看了很久才回答。",
        143,
        218,
    ),
    "japanese": Sample(
        "灯台守は秋の嵐以来、誰とも話していなかった。補給船がようやく岬を回ってきたとき、彼は自分の声が長く使"
        "わなかったせいでかすれていることに気づいた。木箱を一つずつ階段の上へ運びながら、小声で数えた。小麦粉"
        "、ランプの油、じゃがいもが二袋、そして紐で縛られた手紙の束。何年も手紙をくれる人はいなかったので、訪"
        "問者よりも手紙のほうが彼を驚かせた。「一緒に帰りましょう」と船長は言った。「春には灯台は自動になりま"
        "す。」",
        172,
        236,
    ),
    "numbers": Sample(
        "depth,temp_c,salinity,lat,lon,station\n"
        "0.5,11.82,34.917,54.18304,7.88912,4001\n"
        "12.0,10.4,35.0021,54.18311,7.88954,4001\n"
        "103.25,8.061,35.1177,54.20018,7.90113,4002\n"
        "998.75,4.3392,34.98,54.31,8.0019,4017\n"
        "1500,3.9,34.9105,54.42250,8.11875,4018\n"
        "2750.5,2.8713,34.899,55.00001,8.45,4023\n",
        166,
        165,
    ),
    "urls": Sample(
        "https://www.harbour-office.example/berths/north?ship=albatross&from=2026-05-01&nights=3#prices\n"
        "https://docs.tides.example.org/en/latest/reference/api/tide_table.html\n"
        "http://localhost:8080/admin/ships/42/edit?returnTo=%2Fadmin%2Fships&token=abc123\n"
        "https://cdn.example.net/assets/js/vendor.4f2d9c1b.min.js\n"
        "git@example.com:seafarers/logbook.git\n"
        "https://maps.example.com/@54.1830,7.8891,15z/data=!3m1!4b1\n",
        139,
        140,
    ),
    "base64": Sample(
        base64.b64encode(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(14))).decode(),
        410,
        427,
    ),
    "listing": Sample(
        "drwxr-xr-x  7 keeper keeper   4096 Mar 14 09:26 .\n"
        "-rw-r--r--  1 keeper keeper   1204 Mar 12 18:03 README.md\n"
        "-rw-r--r--  1 keeper keeper  88213 Feb 28 07:41 requirements-dev.lock\n"
        "-rwxr-xr-x  1 keeper keeper    512 Jan  3 22:10 run_tests.sh\n"
        "drwxr-xr-x  3 keeper keeper   4096 Mar 14 09:20 src\n"
        "tests/test_moorings.py::test_a_full_harbour_refuses PASSED          [ 33%]\n"
        "tests/test_moorings.py::test_an_anchor_drags FAILED                 [ 66%]\n"
        "=========================== short test summary info ============================\n"
        "FAILED tests/test_moorings.py::test_an_anchor_drags - AssertionError: assert 3 == 4\n",
        199,
        197,
    ),
    "mixed": Sample(
        "## Status ⚓\n"
        "\n"
        "- ✅ Hafen überprüft – „alles in Ordnung“, sagte der Lotse.\n"
        "- ⚠️ Le bateau n'est pas encore arrivé; prévu à "
        "18 h 30.\n"
        "- 🚢 Корабль вышел из порта вчера вечером, ветер "
        "северный.\n"
        "- 항구는 내일 아침까지 닫혀 있습니다.\n"
        "\n"
        "| ship | berth | tonnes |\n"
        "|------|:-----:|-------:|\n"
        "| Albatross | N-4 | 1,204 |\n"
        "| Cormorant | S-11 | 980 |\n",
        118,
        144,
    ),
}
