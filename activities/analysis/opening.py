"""The analyzers of one worker: those that every worker has, and the operator's own."""

from longhaul.activities.analysis.chain import Analyzers, load_analyzers
from longhaul.activities.analysis.judging_model import JudgingModel
from longhaul.activities.models.providers import Providers
from longhaul.agent.permission.decision_table import MODEL_ANALYZER


def open_analyzers(names: str, providers: Providers) -> Analyzers:
    """`names` as in LONGHAUL_ANALYZERS. Raises AnalyzerSetupError."""
    model = JudgingModel(lambda name, request: providers.call(name, request, lambda delta: None))
    return Analyzers({MODEL_ANALYZER: model, **load_analyzers(names)})
