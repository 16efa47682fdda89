"""The REST interface told on a page of our own, from the schema that programs read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

METHODS = ("get", "post")
LONGEST_EXAMPLE = 4000


@dataclass
class Parameter:
    """A field of a request's body."""

    name: str
    kind: str
    required: bool
    description: str


@dataclass
class Operation:
    """Something that can be asked."""

    method: str
    path: str
    summary: str
    parameters: list[Parameter]
    example: str
    answers: list[tuple[str, str]]


def operations(schema: dict[str, Any]) -> list[Operation]:
    """All that a schema tells of."""
    return [
        _operation(schema, method, path, told)
        for path, methods in schema["paths"].items()
        for method, told in methods.items()
        if method in METHODS
    ]


def _operation(schema: dict[str, Any], method: str, path: str, told: dict[str, Any]) -> Operation:
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    fields = {} if body is None else _resolve(schema, body)
    return Operation(
        method.upper(),
        path,
        told.get("summary", ""),
        [
            Parameter(name, _kind(schema, field), name in fields.get("required", []), field.get("description", ""))
            for name, field in fields.get("properties", {}).items()
        ],
        "" if body is None else json.dumps(_example(schema, body), ensure_ascii=False, indent=1)[:LONGEST_EXAMPLE],
        [(status, answer.get("description", "")) for status, answer in told.get("responses", {}).items()],
    )


def _resolve(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A part of the schema, or the one that it refers to."""
    name = part.get("$ref", "").rpartition("/")[2]
    return schema["components"]["schemas"][name] if name else part


def _kind(schema: dict[str, Any], field: dict[str, Any]) -> str:
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(schema, one) for one in field["anyOf"]))
    if field.get("type") == "array":
        return f"list of {_kind(schema, field.get('items', {}))}"
    return field.get("type", "anything")


def _example(schema: dict[str, Any], field: dict[str, Any]) -> Any:
    """A value that would be taken: the required fields alone, those of a row as in the first training row."""
    field = _resolve(schema, field)
    if "examples" in field:
        return field["examples"][0]
    if "default" in field:
        return field["default"]
    if field.get("type") == "array":
        return [_example(schema, field["items"])]
    if field.get("type") == "object":
        properties = field.get("properties", {})
        required = field.get("required") or list(properties)[:1]
        return {name: _example(schema, properties[name]) for name in required}
    return None
