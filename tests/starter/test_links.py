"""Links from a session to where else it can be seen."""

import pytest

from longhaul.starter.links import NAMES, links
from longhaul.starter.settings import BadVariable, Settings

VALUES = dict.fromkeys(NAMES, "") | {
    "conversation": 'night"&x={y}',
    "namespace": "tower/2",
    "workflow_id": "longhaul/lamp/#ana/night watch?",
}


def test_whatever_names_say_stays_one_value_of_the_address() -> None:
    template = "https://traces.example/find?q=%7B{conversation}%7D&{{"

    assert links("http://127.0.0.1:8233/", template, VALUES) == {
        "Temporal's Web UI": "http://127.0.0.1:8233/namespaces/tower%2F2/workflows/longhaul%2Flamp%2F%23ana%2Fnight%20watch%3F",
        "traces": "https://traces.example/find?q=%7Bnight%22%26x%3D%7By%7D%7D&{",
    }


@pytest.mark.parametrize("user", [".", ".."])
def test_a_name_that_a_path_cannot_say_is_no_link(user: str) -> None:
    values = VALUES | {"user": user}

    assert links("", "https://a.example/{user}/x", values) == {}
    assert links("", "https://a.example/.{user}", VALUES | {"user": "."}) == {}
    assert links("", "https://a.example/of-{user}?u={user}", values) == {
        "traces": f"https://a.example/of-{user}?u={user}"
    }


def test_without_settings_there_are_none() -> None:
    assert links("", "", VALUES) == {}


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("web_ui", "127.0.0.1:8233", "give an address as in https://HOST/PATH"),
        ("web_ui", "javascript:alert(1)", "give an address as in https://HOST/PATH"),
        ("web_ui", "https://[::1", "give an address as in https://HOST/PATH"),
        ("web_ui", "https://a.example/\u202e", "give an address as in https://HOST/PATH"),
        ("trace_url", "javascript:{session}", "give an address as in https://HOST/PATH"),
        ("trace_url", "https://a.example/{sesion}", "it may name {agent}, {conversation}"),
        ("trace_url", "https://a.example/{session.__class__}", "it may name {agent}, {conversation}"),
        ("trace_url", "https://a.example/{0}", "it may name {agent}, {conversation}"),
        ("trace_url", "https://a.example/{session", "it may name {agent}, {conversation}"),
        ("trace_url", "{session}://a.example/", "give an address as in https://HOST/PATH"),
        ("trace_url", "https://{session}.a.example/", "behind the HOST alone"),
        ("trace_url", "https://a.example{session}", "behind the HOST alone"),
        ("trace_url", "https://a.example:{session}/", "behind the HOST alone"),
        ("trace_url", "https://a.example/{session!r}", "each without ! and :"),
        ("trace_url", "https://a.example/{session:>99999999999}", "each without ! and :"),
        ("trace_url", "https://a.example/{session:>{user}}", "each without ! and :"),
        ("trace_url", "https://a.example/%2e./{session}", "leave . and .. out of its path"),
    ],
)
def test_what_is_no_address_is_refused(name: str, given: str, said: str) -> None:
    with pytest.raises(BadVariable, match=name) as refused:
        Settings.model_validate({name: given})

    assert said in str(refused.value)
