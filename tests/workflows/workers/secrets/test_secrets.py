"""A session uses secrets, prints them in every form, and its history holds none of them."""

from pathlib import Path

import pytest

from longhaul.activities.masker import Masker
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_flat_history import payload_texts
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

KEY = "gate-9c41f2-open/sesame+7"
PRINTED = (
    'touch used; printf "%s\\n" "$GATE_KEY" "${GATE_KEY^^}"; printf "%s" "$GATE_KEY" | base64; '
    'printf "x%s" "$GATE_KEY" | base64; printf "xy%s" "$GATE_KEY" | base64; printf "%s" "$GATE_KEY" | od -An -tx1; '
    'echo "{\\"key\\": \\"$GATE_KEY\\"}" | python3 -c "import json,sys; print(json.dumps(sys.stdin.read()))"; '
    "python3 -c \"import os,urllib.parse as u; print(u.quote(os.environ['GATE_KEY'], safe=str()))\"; "
    'printf "%s" "$GATE_KEY" > kept; echo done; exit 3'
)


@pytest.mark.proves("D9")
async def test_no_payload_of_a_session_that_prints_its_secrets_holds_one(unserved: Stage, tmp_path: Path) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text(f'GATE_KEY = "{KEY}"\nOTHER = "never given 4711"\n')
    file.chmod(0o600)
    unserved.settings = unserved.settings.model_copy(update={"secrets_file": file})
    masker = Masker({"GATE_KEY": KEY})
    session = unserved.session(
        calls("Bash", command=PRINTED),
        calls("Bash", command='touch x; echo "[$OTHER]"'),
        calls("Read", file_path="kept"),
        calls("Grep", pattern="gate", output_mode="content"),
        calls("Edit", file_path="kept", old_string="gate", new_string="door"),
        calls("open_gate", how="raise"),
        calls("open_gate", how="return"),
        {"text": "All done."},
        tools=["Bash", "Read", "Grep", "Edit", "open_gate"],
        permission={"mode": "bypass"},
        secrets={"allow": ["GATE_KEY"]},
    )
    async with unserved.another_worker():
        done = await session.reply("Open the gate")

        texts = await payload_texts(unserved.handle(session))
        results = [result.get_text() for result in [block for m in [each async for each in session.transcript()]
                   for block in m.get_tool_results()]]  # fmt: skip

    assert (done.error, done.get_text_content()) == (None, "All done.")
    assert [text[:60] for text in texts if masker.found(text)] == []
    assert results[0].count("[secret GATE_KEY]") >= 8
    assert "done\nexit code 3" in results[0]
    assert "[]" in results[1]
    assert all("[secret GATE_KEY]" in text for text in (results[2], results[3], results[5], results[6]))
    assert (unserved.workspace / "used").exists()
    assert "GATE_KEY: every tool" in "".join(texts)
