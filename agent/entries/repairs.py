"""Says which parts a context is sent without from now on: those that are broken, or that a provider refuses."""

from longhaul.agent.plain.values import OpenValue, sparse


class LeftOut(OpenValue):
    """One block of the context, or one part of a result or a hint, that stands there no more."""

    message: int
    """Its place in the context; a summary, where there is one, is the first."""
    block: int
    part: int | None = sparse(None)
    """Of a result's output or of a hint; None: the block itself."""
    words: str = sparse("")
    """What models read in its place; empty: nothing, for thinking."""
    media_type: str = sparse("")
    """It stays, and is sent as what it is: it was declared as something else."""
    extras: bool = sparse(False)
    """It stays, without what its provider had sent along."""


class Repair(OpenValue):
    """Made before the model could answer. The transcript keeps everything as it came."""

    left_out: tuple[LeftOut, ...] = sparse(())
    takes_no_images: str = sparse("")
    """The model that said so, by its full name: it is sent words in their place, and other models the images."""
    refused: str = sparse("")
    """What the provider said; empty where the worker found it by itself."""
    context_digest: str = sparse("")
    """Of the context without those parts, up to the message."""
    context_length: int = sparse(0)
