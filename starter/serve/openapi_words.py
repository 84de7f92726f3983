"""Describes the fields of the schemas: by the docstrings that stand behind them in the models' own source."""

import ast
import inspect
import textwrap
from functools import cache
from typing import Any

from pydantic import BaseModel

Json = dict[str, Any]


def describe(schema: Json, model: type[BaseModel]) -> None:
    """Add to the schema of a model what it does not say yet of its properties."""
    said = {name: text for each in reversed(model.__mro__) for name, text in _docstrings(each).items()}
    for name, each in schema.get("properties", {}).items():
        if name in said and "description" not in each:
            each["description"] = said[name]


def models_under(roots: list[type[BaseModel]]) -> dict[str, type[BaseModel]]:
    """The models that these are made of, by their names; of two with one name neither."""
    found: dict[str, type[BaseModel]] = {}
    twice: set[str] = set()
    left = list(roots)
    while left:
        model = left.pop()
        if found.get(model.__name__) is model:
            continue
        twice |= {model.__name__} & found.keys()
        found[model.__name__] = model
        for field in model.model_fields.values():
            left += _models_in(field.annotation)
    return {name: model for name, model in found.items() if name not in twice}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = [*getattr(annotation, "__args__", ()), getattr(annotation, "__value__", None)]
    return [model for each in inner if each is not None for model in _models_in(each)]


@cache
def _docstrings(model: type) -> dict[str, str]:
    """By field; none for a class whose source is not there."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    except (OSError, TypeError, SyntaxError):
        return {}
    (written,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    found = {}
    for field, behind in zip(written.body, written.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(behind, ast.Expr):
            text = behind.value.value if isinstance(behind.value, ast.Constant) else None
            if isinstance(text, str):
                found[field.target.id] = inspect.cleandoc(text).replace("\n", " ")
    return found
