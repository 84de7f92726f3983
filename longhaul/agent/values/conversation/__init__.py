"""A conversation is what a model is shown and says: messages, prompts, tools, answers in a form."""
