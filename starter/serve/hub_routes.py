"""The rows about hubs in the table of routes."""

from longhaul.agent.hub_membership import LeaveHub
from longhaul.starter.serve import hubs
from longhaul.starter.serve.operation import Operation
from longhaul.starter.serve.request_bodies import Nothing, Whose
from longhaul.starter.serve.requests import IDEMPOTENCY_KEY
from longhaul.workflows.contract import HubCard

HEARD_SECONDS = 130.0
"""Who begins a hub, or joins, waits until its members have heard it, or it is known which one does not."""
H = "/v1/hubs/{hub}"
KEY = (IDEMPOTENCY_KEY, "Names what is said: sent again, it is told once")

HUBS: tuple[Operation, ...] = (
    Operation("GET", "/v1/hubs", "hubs", "Hubs that are open", hubs.hubs, "read", {200: hubs.HubRows}, Whose),
    Operation(
        "POST",
        "/v1/hubs",
        "beginHub",
        "Let sessions hear each other",
        hubs.begin_hub,
        "answer",
        {201: HubCard},
        Whose,
        hubs.NewHub,
        (KEY,),
        HEARD_SECONDS,
    ),
    Operation("GET", H, "hub", "Its members, and what was said last", hubs.hub, "read", {200: HubCard}, Whose),
    Operation(
        "POST",
        f"{H}/say",
        "sayInHub",
        "Tell all members something",
        hubs.say_in_hub,
        "answer",
        {200: hubs.HubSaid},
        Whose,
        hubs.Saying,
        (KEY,),
    ),
    Operation(
        "POST",
        f"{H}/join",
        "joinHub",
        "Let sessions in",
        hubs.join_hub,
        "answer",
        {200: HubCard},
        Whose,
        hubs.Joining,
        seconds=HEARD_SECONDS,
    ),
    Operation(
        "POST",
        f"{H}/leave",
        "leaveHub",
        "Let members go: they hear what was said before",
        hubs.leave_hub,
        "answer",
        {200: HubCard},
        Whose,
        LeaveHub,
    ),
    Operation(
        "POST",
        f"{H}/end",
        "endHub",
        "It is over; the sessions of its members stay",
        hubs.end_hub,
        "answer",
        {204: None},
        Whose,
        Nothing,
    ),
)
