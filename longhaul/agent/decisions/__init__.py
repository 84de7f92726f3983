"""Rules that `agent.decision` asks before it says what comes next."""
