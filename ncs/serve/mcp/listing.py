"""The tools as clients list them: names, descriptions, schemas."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from ncs.serve.mcp.asked import TITLES, TOOLS, description


def tools() -> list[types.Tool]:
    """The tools as clients list them. They change nothing in the project: the index is ours, and git ignores it."""
    return [
        types.Tool(
            name=name, title=TITLES[name], description=description(name), input_schema=_schema(name),
            annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        )
        for name in TOOLS
    ]  # fmt: skip


def _schema(tool: str) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without what says nothing to an agent: every session pays for it.

    What may be left away may be null, too; that is not said.
    """
    schema = TOOLS[tool].model_json_schema()
    fields = {name: _field(field) for name, field in schema["properties"].items()}
    return {
        "type": "object",
        "required": schema.get("required", []),
        "additionalProperties": False,
        "properties": fields,
    }


def _field(field: dict[str, Any]) -> dict[str, Any]:
    first = field.get("anyOf", [{}])[0]
    dropped = {"title", "anyOf", "maxLength", "minLength"} | ({"default"} if field.get("default") is None else set())
    return {name: value for name, value in {**first, **field}.items() if name not in dropped}
