"""The OpenAPI 3.1 document, made from the table of routes and the models in it.

Fields are described by the docstrings that stand behind them in the models' own source.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from longhaul.starter.serve.problems import MEDIA_TYPE, TITLES, ProblemBody
from longhaul.starter.serve.requests import Operation

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


Used = tuple[type[BaseModel], JsonSchemaMode]
Schemas = dict[Any, Json]
"""By the model and what it is used for."""
TEMPLATE = "#/components/schemas/{model}"
PROBLEM: Used = (ProblemBody, "serialization")


def document(operations: Sequence[Operation], root_path: str = "", *, guarded: bool = True) -> Json:
    """All operations; a client can be made from it. `guarded`: whether tokens are wanted."""
    used = [PROBLEM, *dict.fromkeys(pair for operation in operations for pair in _models(operation))]
    found, definitions = models_json_schema(used, ref_template=TEMPLATE)
    schemas: Schemas = {**found}
    models = models_under([model for model, _ in used])
    for name, schema in definitions.get("$defs", {}).items():
        if model := models.get(name.removesuffix("-Input").removesuffix("-Output")):
            describe(schema, model)
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas, guarded=guarded)
    try:
        release = version("longhaul-agents")
    except PackageNotFoundError:
        release = "0"
    return {
        "openapi": "3.1.0",
        "info": {"title": "Longhaul", "version": release, "summary": "Sessions of durable agents"},
        "servers": [{"url": root_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            **({"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if guarded else {}),
        },
    }


def _models(operation: Operation) -> Iterable[Used]:
    if operation.body is not None:
        yield (operation.body, "validation")
    for answer in operation.answers.values():
        if isinstance(answer, type):
            yield (answer, "serialization")


def _described(operation: Operation, schemas: Schemas, *, guarded: bool) -> Json:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    in_headers = [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": meaning}
        for name, meaning in operation.headers
    ]
    # Query models hold plain values only, so that no schema refers to another one.
    properties: dict[str, Json] = operation.query.model_json_schema().get("properties", {})
    in_query = [
        {"name": name, "in": "query", "required": False, "schema": schema, **_described_by(schema)}
        for name, schema in properties.items()
    ]
    found: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*in_path, *in_query, *in_headers],
        "responses": _responses(operation, schemas),
    }
    if operation.scope is not None and guarded:
        found["security"] = [{"token": []}]
        further = "".join(f" With `{name}`: the scope `{scope}` too." for name, scope in operation.fields.items())
        both = f"`{operation.scope}`" if operation.also is None else f"`{operation.scope}`, and `{operation.also}` too"
        found["description"] = f"Needs a token with the scope {both}.{further}"
    if operation.body is not None:
        content = {"application/json": {"schema": schemas[(operation.body, "validation")]}}
        found["requestBody"] = {
            "content": content,
            "required": any(field.is_required() for field in operation.body.model_fields.values()),
        }
    return found


def _described_by(schema: Json) -> Json:
    return {"description": schema["description"]} if "description" in schema else {}


def _responses(operation: Operation, schemas: Schemas) -> Json:
    found: Json = {}
    for status, answer in sorted(operation.answers.items()):
        match answer:
            case None:
                found[str(status)] = {"description": "Done"}
            case str():
                found[str(status)] = {"description": "Continues", "content": {answer: {"schema": {"type": "string"}}}}
            case _:
                content = {"application/json": {"schema": schemas[(answer, "serialization")]}}
                found[str(status)] = {"description": answer.__doc__ or answer.__name__, "content": content}
    kinds = ", ".join(f"{status} {kind}" for kind, (status, _) in TITLES.items())
    problem = {"description": f"A problem: {kinds}", "content": {MEDIA_TYPE: {"schema": schemas[PROBLEM]}}}
    return {**found, "default": problem}
