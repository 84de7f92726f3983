"""What an agent reads in a day, with what tiktoken counts of it: the yardstick for the estimator.

The numbers were counted with tiktoken 0.14 and the encodings' files; `test_tokens.py` counts again where they are.
"""
# ruff: noqa: RUF001  the texts are in the languages that they are in

import base64
import hashlib
import json
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
    "german": Sample(
        "Der Leuchtturmwärter hatte seit den Herbststürmen mit niemandem gesprochen. Als das Versorgungsboot "
        "endlich um die Landspitze kam, merkte er, dass seine Stimme vom langen Schweigen rau geworden war. Er "
        "trug die Kisten einzeln die Treppe hinauf und zählte leise mit: Mehl, Lampenöl, zwei Säcke Kartoffeln "
        "und ein Bündel Briefe, mit einer Schnur zusammengebunden. Seit Jahren hatte ihm niemand geschrieben, "
        "deshalb überraschten ihn die Briefe mehr als der Besuch. „Sie sollten mit uns zurückfahren“, sagte der "
        "Kapitän. „Im Frühjahr wird das Licht ohnehin automatisch gesteuert.“ Er sah lange zur Lampe, bevor er "
        "antwortete. Dann fragte er, wer in den Winternächten den Schnee von den Scheiben wischen würde.\n",
        172,
        206,
    ),
    "german_report": Sample(
        "Sehr geehrte Frau Brandt,\n\nvielen Dank für Ihre Anfrage vom 12. Oktober. Die Überprüfung der "
        "Liegeplatzgebühren hat ergeben, dass für den Zeitraum vom 1. Mai bis zum 30. September drei Rechnungen "
        "doppelt gestellt wurden. Wir haben die Beträge storniert und überweisen Ihnen 1.284,50 Euro bis "
        "spätestens Ende der kommenden Woche. Bitte beachten Sie, dass der neue Mietvertrag erst nach der "
        "Unterzeichnung beider Seiten gültig ist; die Kündigungsfrist beträgt weiterhin drei Monate zum "
        "Quartalsende. Sollten Sie das Boot über den Winter in der Halle lassen wollen, benötigen wir Ihre "
        "schriftliche Bestätigung, die Versicherungsnummer und eine Telefonnummer, unter der Sie im Notfall "
        "erreichbar sind. Für Rückfragen stehen wir Ihnen gerne zur Verfügung.\n\nMit freundlichen Grüßen\n"
        "Hafenverwaltung\n",
        173,
        214,
    ),
    "chinese_report": Sample(
        "尊敬的用户：\n\n感谢您在十月十二日提交的申请。经过核对，我们发现五月一日至九月三十日期间有三张账单被重复开具。"
        "相关金额已经取消，一千二百八十四元五角将在下周末之前退回您的账户。请注意，新的租赁合同只有在双方签字之后才能生效，"
        "解除合同仍需提前三个月通知。如果您希望冬季把船停放在仓库里，请提供书面确认、保险编号以及紧急情况下可以联系到您的电话号码。"
        "系统在处理数据时可能会出现错误，如果无法打开文件，请检查网络连接，然后重新启动程序。如有任何问题，欢迎随时与我们联系。\n\n"
        "此致\n敬礼\n港口管理处\n",
        163,
        244,
    ),
    "json_config": Sample(
        json.dumps(
            {
                "name": "harbour-office",
                "version": "2.4.1",
                "scripts": {"build": "tsc -p tsconfig.json", "test": "vitest run --coverage", "lint": "eslint src"},
                "dependencies": {"express": "^4.21.2", "luxon": "^3.5.0", "zod": "^3.24.1", "pg-promise": "^11.10.2"},
                "engines": {"node": ">=20.0.0"},
                "settings": {
                    "berths": [{"id": number, "length": 8.5 + number, "free": number % 3 == 0} for number in range(6)],
                    "notify": {"email": "office@harbour.example", "retries": 3, "backoffSeconds": [1, 5, 30]},
                },
            },
            indent=2,
        ),
        354,
        354,
    ),
    "json_rows": Sample(
        json.dumps(
            [
                {
                    "id": 7_000 + 37 * number,
                    "ship": ("Albatross", "Cormorant", "Gannet", "Puffin")[number % 4],
                    "arrived": f"2026-03-{10 + number}T0{number % 9}:26:00Z",
                    "tonnes": 120.5 + number * 13.25,
                    "paid": number % 2 == 0,
                    "note": None if number % 3 else "moved to the inner basin",
                }
                for number in range(8)
            ]
        ),
        441,
        442,
    ),
}
