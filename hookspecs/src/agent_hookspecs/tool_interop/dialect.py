"""JSON Schema for APIs that know only part of it.

Owns the description of such a dialect and the rewriting of a schema into it. Nothing is lost in
silence: what a dialect cannot express is told to the caller. It must not know which API has which
dialect; a plugin describes its own.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any
from urllib.parse import unquote

from agent_hookspecs.tool_interop.views import JsonObject, Warn
from agent_hookspecs.values import dataclass

__all__ = ["SchemaDialect", "adapt_schema"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDialect:
    """What the tool parameters of an API may contain; by default, everything.

    ``refs``: ``$ref`` and ``$defs``; without, they are inlined.
    ``any_of``, ``one_of``, ``all_of``: the keywords. ``root_unions``: all three at the root.
    ``type_lists``: ``"type": ["string", "integer"]``.
    ``nullable_keyword``: ``"nullable": true`` is used instead of the type null.
    ``const``: the keyword; without, it becomes an ``enum`` of one.
    ``non_string_enums``: enums may hold other values than strings.
    ``additional_properties``: the keyword. ``boolean_schemas``: true and false as schemas.
    ``open_arrays``: arrays without ``items``, such as those of ``prefixItems`` alone; without,
    they say that anything may be in them, which they mean.
    ``formats``: the values of ``format`` that are understood, None for any.
    ``unsupported``: all other keywords that must not appear.
    ``name`` stands in warnings.
    """

    name: str
    refs: bool = True
    any_of: bool = True
    one_of: bool = True
    all_of: bool = True
    root_unions: bool = True
    type_lists: bool = True
    nullable_keyword: bool = False
    const: bool = True
    non_string_enums: bool = True
    additional_properties: bool = True
    boolean_schemas: bool = True
    open_arrays: bool = True
    formats: frozenset[str] | None = None
    unsupported: frozenset[str] = frozenset()


#: What functions of the OpenAI APIs take when they are not strict: all but unions at the root, and
#: arrays that do not say what is in them.
OPENAI_DIALECT = SchemaDialect(name="OpenAI", root_unions=False, open_arrays=False)

# Where schemas stand within a schema; everything else is data.
_SCHEMA_MAPS = {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
_SCHEMA_LISTS = {"anyOf", "oneOf", "allOf", "prefixItems"}
_SCHEMAS = (
    {"items", "additionalItems", "unevaluatedItems", "contains", "contentSchema"}
    | {"additionalProperties", "unevaluatedProperties", "propertyNames"}
    | {"not", "if", "then", "else"}
)

_DEFINITIONS = frozenset({"$defs", "definitions"})
_REFS = ("$ref", "$dynamicRef", "$recursiveRef")
#: These say nothing about what a tool accepts; dropping them is no loss.
_ABOUT_THE_DOCUMENT = frozenset(
    {"$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"}
)
#: Of two of these the outer one counts, and neither changes what is accepted.
_ANNOTATIONS = _ABOUT_THE_DOCUMENT | {"title", "description", "default", "examples", "deprecated"}

#: Keys whose value is not a schema but something that a schema is about.
_DATA = frozenset({"default", "enum", "const", "examples"})

#: Inlining can grow a schema without bound; beyond this many nodes references are cut.
_MAX_NODES = 10_000


def adapt_schema(
    schema: Mapping[str, Any], dialect: SchemaDialect, warn: Warn | None = None
) -> JsonObject:
    """The parameters of a tool as ``dialect`` can express them; ``schema`` stays untouched.

    Where something has to give, the result accepts at least one of the forms that the source does,
    and ``warn`` gets one sentence for each kind of loss with the places where it happened; without
    ``warn`` it is logged. An empty ``required`` and references that are merely inlined are no loss.
    """
    rewriting = _Rewriting(dict(schema), dialect)
    adapted = rewriting.adapt_root()
    for loss, places in rewriting.losses.items():
        shown = ", ".join(place or "the root" for place in list(places)[:5])
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        (warn or _log.warning)(f"{loss} (at {shown}{more}): {dialect.name} cannot express it")
    return adapted


def without_empty_required(value: Any) -> Any:
    """A declaration without a ``required`` that requires nothing, which strict servers refuse.

    It is the same object if there is none; what stands in it as data is left alone.
    """
    if isinstance(value, dict):
        kept = {
            key: item if key in _DATA else without_empty_required(item)
            for key, item in value.items()
            if key != "required" or item != []
        }
        same = len(kept) == len(value) and all(kept[key] is value[key] for key in kept)
        return value if same else kept
    if isinstance(value, list):
        items = [without_empty_required(item) for item in value]
        return value if all(map(is_, items, value)) else items
    return value


class _Rewriting:
    """One schema on its way into one dialect."""

    def __init__(self, root: JsonObject, dialect: SchemaDialect) -> None:
        self.root = root
        self.dialect = dialect
        #: The places of each kind of loss, in order.
        self.losses: dict[str, dict[str, None]] = {}
        self.nodes = 0
        self.following: list[str] = []

    def adapt_root(self) -> JsonObject:
        # A root that is nothing but a reference would hide from the API that it is an object.
        root = self.root if self.dialect.refs else self.inline_refs(self.root, "", ())
        root = self.rewrite(self.follow_ref(root, ""), "")
        if "type" not in root:
            # Arguments are always an object, and most APIs insist on reading so.
            root = {"type": "object", **root}
        return root

    def lose(self, what: str, path: str) -> None:
        self.losses.setdefault(what, {})[path] = None

    # References.

    def inline_refs(self, schema: Any, path: str, opened: tuple[str, ...]) -> Any:
        """The schema with every reference replaced by what it means."""
        self.nodes += 1
        if not isinstance(schema, dict):
            return schema
        node = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
        while reference := _pop_reference(node):
            found = self.resolve(reference, path)
            if reference in opened or self.nodes > _MAX_NODES:
                why = "recursive reference" if reference in opened else "reference of a huge schema"
                self.lose(f"the {why} {reference!r} is cut and accepts more", path)
                found = {key: found[key] for key in ("type", "description") if key in found}
            opened = (*opened, reference)
            self.conjoin(node, {key: found[key] for key in found if key not in _DEFINITIONS}, path)
        return _with_subschemas(
            node, path, lambda each, place: self.inline_refs(each, place, opened)
        )

    def follow_ref(self, node: JsonObject, path: str) -> JsonObject:
        """The schema with its own references replaced, for where its keywords must be seen."""
        node = dict(node)
        while reference := _pop_reference(node):
            if reference in self.following:
                self.lose(f"the recursive reference {reference!r} is cut and accepts more", path)
            else:
                self.following.append(reference)
                self.conjoin(node, self.resolve(reference, path), path)
        return node

    def resolve(self, reference: str, path: str) -> JsonObject:
        found: Any = self.root if reference.startswith("#") else None
        for step in reference[1:].split("/")[1:] if found is not None else ():
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, dict):
                found = found.get(name)
            else:
                found = None
        if isinstance(found, dict):
            return found
        if found is not True:
            self.lose(f"the reference {reference!r} leads to no schema and is dropped", path)
        return {}

    # Conjunctions and unions.

    def rewrite(self, schema: Any, path: str) -> Any:
        """The schema in the dialect; its references are inlined or allowed."""
        if isinstance(schema, bool):
            if self.dialect.boolean_schemas:
                return schema
            if not schema:
                self.lose("a schema that accepts nothing now accepts anything", path)
            return {}
        if not isinstance(schema, dict):
            return copy.deepcopy(schema)
        node = self.flatten(dict(schema), path)
        self.rewrite_values(node, path)
        kept = {key: value for key, value in node.items() if not self.drops(key, value, path)}
        return _with_subschemas(kept, path, self.rewrite)

    def flatten(self, node: JsonObject, path: str) -> JsonObject:
        """The schema without the conjunctions and unions that the dialect does not know."""
        dialect = self.dialect
        unions = dialect.root_unions or path != ""
        if not (dialect.all_of and unions):
            for member in self.members(node, "allOf", path):
                self.conjoin(node, member, path)
        if dialect.nullable_keyword:
            self.take_null_out(node, "anyOf", path)
            self.take_null_out(node, "oneOf", path)
        widens = dialect.any_of and unions and not dialect.one_of
        if widens and "oneOf" in node and "anyOf" not in node:
            self.lose("oneOf is now anyOf", path)
            node["anyOf"] = node.pop("oneOf")
        if not (dialect.one_of and unions):
            self.dissolve(node, "oneOf", path)
        if not (dialect.any_of and unions):
            self.dissolve(node, "anyOf", path)
        return node

    def members(self, node: JsonObject, key: str, path: str) -> list[JsonObject]:
        """Take the schemas of a conjunction or union out, each flattened itself."""
        given = node.pop(key, None)
        members: list[JsonObject] = []
        for member in given if isinstance(given, list) else []:
            if isinstance(member, dict):
                depth = len(self.following)
                members.append(self.flatten(self.follow_ref(member, path), path))
                del self.following[depth:]
        return members

    def conjoin(self, node: JsonObject, other: JsonObject, path: str) -> None:
        """Add the constraints of ``other`` to ``node``."""
        for key, value in other.items():
            mine = node.get(key)
            if key not in node:
                node[key] = value
            elif mine == value or key in _ANNOTATIONS:
                continue
            elif key in _SCHEMA_MAPS and isinstance(mine, dict) and isinstance(value, dict):
                if any(name in mine and mine[name] != value[name] for name in value):
                    self.lose(f"of two {key} of one name the first is kept", path)
                node[key] = {**mine, **{name: value[name] for name in value if name not in mine}}
            elif key == "required" and isinstance(mine, list) and isinstance(value, list):
                node[key] = [*mine, *(name for name in value if name not in mine)]
            elif key == "allOf" and isinstance(mine, list) and isinstance(value, list):
                node[key] = [*mine, *value]
            elif key == "type" and (common := _common_types(mine, value)):
                node[key] = common[0] if len(common) == 1 else common
            elif key == "enum" and isinstance(mine, list) and isinstance(value, list):
                node[key] = [each for each in mine if each in value]
            else:
                self.lose(f"of two {key} that hold together the first is kept", path)

    def take_null_out(self, node: JsonObject, key: str, path: str) -> None:
        """Say a union with null by the keyword."""
        members = node.get(key)
        if not isinstance(members, list) or not any(map(_is_null, members)):
            return
        others = [member for member in members if not _is_null(member)]
        node["nullable"] = True
        node[key] = others
        if len(others) < 2:
            for member in self.members(node, key, path):
                self.conjoin(node, member, path)

    def dissolve(self, node: JsonObject, key: str, path: str) -> None:
        """Replace a union by one schema, as near to it as can be."""
        members = self.members(node, key, path)
        if not members:
            return
        types = [each["type"] for each in members if set(each) == {"type"}]
        if len(members) == 1:
            self.conjoin(node, members[0], path)
        elif len(types) == len(members) and all(isinstance(each, str) for each in types):
            self.conjoin(node, {"type": types}, path)
        elif path == "" or all(isinstance(each.get("properties"), dict) for each in members):
            self.lose(f"{key} is now one object with the properties of all", path)
            self.conjoin(node, _union_of_objects(members), path)
        else:
            self.lose(f"of {key} the first is kept", path)
            self.conjoin(node, members[0], path)

    def drops(self, key: str, value: Any, path: str) -> bool:
        dialect = self.dialect
        if key == "required" and value == []:
            return True
        if key == "additionalProperties" and not dialect.additional_properties:
            if value is not True and value != {}:
                self.lose("additionalProperties is dropped", path)
            return True
        if key == "format" and dialect.formats is not None and value not in dialect.formats:
            self.lose(f"the format {value!r} is dropped", path)
            return True
        if key in dialect.unsupported:
            if key not in _ABOUT_THE_DOCUMENT:
                self.lose(f"{key} is dropped", path)
            return True
        return False

    # Types and values.

    def rewrite_values(self, node: JsonObject, path: str) -> None:
        dialect = self.dialect
        if "const" in node and not dialect.const:
            value = node.pop("const")
            self.conjoin(node, {"enum": [value]}, path)
        if dialect.nullable_keyword:
            self.nulls_to_keyword(node, path)
        elif node.get("nullable") is True and "type" in node:
            self.keyword_to_null(node)
        types = node.get("type")
        if isinstance(types, list) and not dialect.type_lists:
            self.split_types(node, types, path)
        if not dialect.open_arrays and _is_array(node) and "items" not in node:
            node["items"] = {}
        enum = node.get("enum")
        others = isinstance(enum, list) and any(not isinstance(value, str) for value in enum)
        if others and not dialect.non_string_enums:
            del node["enum"]
            self.lose("an enum of other values than strings is dropped", path)

    def nulls_to_keyword(self, node: JsonObject, path: str) -> None:
        types, enum = node.get("type"), node.get("enum")
        named = [types] if isinstance(types, str) else types
        null = False
        if isinstance(named, list) and "null" in named:
            null = True
            rest = [each for each in named if each != "null"]
            if rest:
                node["type"] = rest[0] if len(rest) == 1 else rest
            else:
                del node["type"]
                self.lose("the type null is now any type", path)
        if isinstance(enum, list):
            null = None in enum and (null or named is None)
            if None in enum and len(enum) > 1:
                node["enum"] = [value for value in enum if value is not None]
        if null:
            node["nullable"] = True

    def keyword_to_null(self, node: JsonObject) -> None:
        del node["nullable"]
        types, enum = node["type"], node.get("enum")
        named = [types] if isinstance(types, str) else types
        if isinstance(named, list) and "null" not in named:
            node["type"] = [*named, "null"]
        if isinstance(enum, list) and None not in enum:
            node["enum"] = [*enum, None]

    def split_types(self, node: JsonObject, types: list[Any], path: str) -> None:
        if len(types) == 1:
            node["type"] = types[0]
        elif self.dialect.any_of and "anyOf" not in node and (path or self.dialect.root_unions):
            del node["type"]
            node["anyOf"] = [{"type": each} for each in types]
        elif types:
            kept = next((each for each in types if each != "null"), types[0])
            node["type"] = kept
            self.lose(f"of several types only {kept} is kept", path)


def _with_subschemas(node: JsonObject, path: str, change: Callable[[Any, str], Any]) -> JsonObject:
    """A copy of the schema with ``change(schema, path)`` for each schema directly within."""
    changed: JsonObject = {}
    for key, value in node.items():
        place = f"{path}/{key}"
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            changed[key] = {name: change(each, f"{place}/{name}") for name, each in value.items()}
        elif (key in _SCHEMA_LISTS or key == "items") and isinstance(value, list):
            changed[key] = [change(each, f"{place}/{n}") for n, each in enumerate(value)]
        elif key in _SCHEMAS:
            changed[key] = change(value, place)
        else:
            changed[key] = copy.deepcopy(value)
    return changed


def _pop_reference(node: JsonObject) -> str | None:
    for key in _REFS:
        if isinstance(node.get(key), str):
            reference: str = node.pop(key)
            return reference
    return None


def _is_null(schema: object) -> bool:
    """Whether the schema accepts null and nothing else."""
    if not isinstance(schema, dict):
        return False
    constraints = {key: schema[key] for key in schema if key not in _ANNOTATIONS}
    return constraints in ({"type": "null"}, {"const": None}, {"enum": [None]})


def _is_array(node: JsonObject) -> bool:
    types = node.get("type")
    return types == "array" or (isinstance(types, list) and "array" in types)


def _common_types(mine: object, other: object) -> list[Any]:
    first = mine if isinstance(mine, list) else [mine]
    second = other if isinstance(other, list) else [other]
    return [each for each in first if each in second]


def _union_of_objects(members: list[JsonObject]) -> JsonObject:
    """An object that accepts what any of the members does, as far as properties tell."""
    properties: JsonObject = {}
    required: list[Any] | None = None
    for member in members:
        given, asked = member.get("properties"), member.get("required")
        for name, schema in given.items() if isinstance(given, dict) else ():
            known = properties.setdefault(name, schema)
            if known != schema:
                properties[name] = {"anyOf": [known, schema]}
        names = asked if isinstance(asked, list) else []
        required = [name for name in names if required is None or name in required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }
