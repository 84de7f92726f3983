"""The mistake of an operator whose modules can not be loaded."""

from longhaul.agent.plain.errors import BadSetup


class ToolSetupError(BadSetup):
    """The operator's mistake: a module that can't be loaded, a name that is wrong or taken."""
