"""The embeddings of the settings, where texts are put in or looked for without a worker."""

from longhaul.starter.settings import Settings
from longhaul.stores.memories.vectors import Meaning


def meaning_of(settings: Settings, *, patient: bool = False) -> Meaning | None:
    """None where embeddings are off. `patient`: nobody waits for a reply. Raises BadSetup."""
    if not settings.embeddings:
        return None
    # What asks a model is loaded where one is asked.
    from longhaul.activities.models.embeddings import open_meaning  # noqa: PLC0415
    from longhaul.activities.models.profiles import read_key_places, read_profiles  # noqa: PLC0415
    from longhaul.activities.models.providers import Providers  # noqa: PLC0415

    providers = Providers(places=read_key_places(settings.model_keys), profiles=read_profiles(settings.models))
    return open_meaning(settings.embeddings, settings.retrieval, providers, str, patient=patient)
