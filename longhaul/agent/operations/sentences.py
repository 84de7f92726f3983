"""One sentence for people to each operation of a session, without a full stop.

The rows of `agent.operations.all_operations` have them, and so have routes, commands and pages. It imports nothing:
`longhaul --help` reads it, and must not load what the bodies are made of.
"""

SENTENCES = {
    "submit": "Ask for a reply; the first message begins the session",
    "confirm": "Allow or deny a call, in the name of the approver",
    "external_result": "Hand in results of external tools",
    "resolve": "Say whether a call of unknown outcome happened",
    "interrupt": "End the reply that is being made, or drop a request that waits",
    "stop_background": "Stop what works in the background of a session: commands and sub-agents",
    "observe": "Add to a session's context without asking for a reply",
    "notify": "Tell a session of an event, which wakes the call that waits for it",
    "configure": "Change a session's settings",
    "compact": "Make a session's context shorter, if it is above its threshold",
    "pause": "Let a session begin nothing new until somebody resumes it; what runs ends by itself",
    "step": "Let a paused session take one step: run calls that may run, make its context shorter, or ask the model",
    "resume": "Let a session continue that is paused or quarantined",
    "budget": "Raise what a session may spend, or end a reply that waits for more",
    "rules": "Add and revoke rules of a session",
    "replace_state": "Replace the state of an idle or waiting session; begin the session where there is none",
    "worker_left": "A worker was shut down in the midst of it",
    "worker_lacks": "A worker can't do what the session waits for",
    "child_reported": "A sub-agent's task has ended",
    "ask": "A workflow of an application asks for a reply, and waits for its end",
    "report_again": "Its sub-agent is to say so once more",
    "hub_says": "What was said in a hub that the session is in",
}
"""By operation."""
