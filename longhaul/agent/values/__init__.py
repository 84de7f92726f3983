"""Values are what everybody here speaks in: messages, settings, tools, plans, tasks."""
