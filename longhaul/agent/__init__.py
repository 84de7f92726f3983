"""The thinking part of Longhaul: what an agent session is, and what it does next. Pure, like arithmetic.

Theory of operation
-------------------
A session is a list of *entries* (`agent.entries`): what was asked, what the model said, what the tools
returned, what people decided. Nothing else is true; `agent.journal` reduces the entries to the state that the
next step needs. Entries that were written down outside are forgotten at a continue-as-new; what is live of the state
is carried (`agent.incarnation.continued_state`).

`agent.decision.decide(journal, load)` looks at the journal and names the next step:

    Restore    look for an earlier incarnation of this session
    Prepare    start the next request: which tools, which workspace
    Compress   make the context shorter (`agent.decisions.compaction`)
    Think      ask the model
    Examine    find out more about calls whose findings are old
    Judge      write down what permission says about each call
    Answer     answer a call without any worker (`agent.decisions.session_tools`)
    Remind     tell the model again what holds and its context has lost (`agent.reducer.reminder_state`)
    Join       tell the model what was said in the midst of its reply
    Act        start the calls that may run
    TakeIn     have a long result from outside shortened
    Verify     have signed decisions checked
    Probe      have a tool look whether a call happened whose outcome is unknown
    BeginStep  take the one step that a paused session was asked for
    Book       put aside what the next model call may cost, or say what is lacking (`agent.decisions.budget_limits`)
    Park       wait for a person, for an outside system, or for calls that are running
    HandleInterrupt
               ask the workers' hooks for an interrupted agent's last words
    TakeOver   await the end of a command that an earlier run has started (`agent.decisions.background_commands`)
    Memorise   write the reply down in the long-term memory (`agent.decisions.model_turn`)
    Tell       pass an interrupt, a pause or its end on to sub-agents (`agent.decisions.subagent_start`)
    Report     say to the session that started this one how the task ended
    TellAsker  say to a workflow of an application how the request ended that it waits for
    TellHub    say to a hub that the session is in what a reply came to (`agent.decisions.continue_as_new`)
    Finish     end the reply
    Idle       wait for a request
    Checkpoint write down outside what is new (`agent.decisions.continue_as_new`)
    ContinueAsNew
               go on in a fresh history
    Close      end a session that nobody has needed for long

Whoever drives it (a Temporal workflow, or a loop in a test) does the step, records what came of it, and asks
again. What comes from outside goes through `agent.operations.all_operations`, which answers with entries or with a
reason why not.

Nothing in this package reads a clock, a file, the environment or a random number; times and ids are given to
it. It runs inside a workflow, so a changed rule changes live sessions: see `decision.BEHAVIOUR`.
"""
