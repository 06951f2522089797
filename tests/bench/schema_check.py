# SPDX-License-Identifier: MIT
"""As much of JSON Schema as results.schema.json uses. A keyword it doesn't know is an error."""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "enum", "required",
         "properties", "additionalProperties", "items"}


def errors(value, schema, root=None, path="$"):
    """What is wrong with `value`, a text each; [] if nothing."""
    root = root or schema
    assert not set(schema) - KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        return errors(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path}: {value!r} is none of {schema['enum']}"]
    allowed = schema.get("type", [])
    allowed = [allowed] if isinstance(allowed, str) else allowed
    if allowed and not any(is_a(value, name) for name in allowed):
        return [f"{path}: {value!r} is no {allowed}"]
    found = []
    if isinstance(value, dict):
        found += object_errors(value, schema, root, path)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            found += errors(item, schema["items"], root, f"{path}[{index}]")
    return found


def is_a(value, name):
    if name in ("number", "integer"):
        kinds = int if name == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def object_errors(value, schema, root, path):
    found = [f"{path}: {name} is missing" for name in schema.get("required", []) if
             name not in value]
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in schema.get("properties", {}):
            found += errors(item, schema["properties"][name], root, f"{path}.{name}")
        elif others is False:
            found.append(f"{path}: {name} is unknown")
        elif others is not True:
            found += errors(item, others, root, f"{path}.{name}")
    return found
