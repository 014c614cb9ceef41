"""Tools from plain typed functions: schema, validation and effect from signature and docstring.

Owns the `tool` decorator and the plugin classes it makes. pydantic does the types and is imported
when a schema is first asked for, never when a function is decorated. It must not know how calls
arrive, who allows them, or what becomes of a result.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from functools import update_wrapper
from types import MethodType, NoneType, SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from agent_hookspecs.authoring.docstrings import read_docstring
from agent_hookspecs.authoring.tool_context import ToolContext
from agent_hookspecs.authoring.typed_dicts import readable_type
from agent_hookspecs.errors import ContractError, ToolArgumentsError, UnknownToolError
from agent_hookspecs.messages import Context, State
from agent_hookspecs.roles import Effect, ToolPlugin

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["tool", "tools"]

P = ParamSpec("P")
R = TypeVar("R")

_EFFECTS: tuple[Effect, ...] = get_args(Effect)
#: What a plugin id may be; a tool that is a plugin of its own goes by its own name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
#: Parameters that the host fills, and the types that may stand beside them.
_INJECTED = {"context": "Context", "state": "State"}
_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments",
    inspect.Parameter.VAR_KEYWORD: "takes arguments of any name",
    inspect.Parameter.POSITIONAL_ONLY: "cannot be passed by name",
}
#: How a `ToolContext` is written where annotations are not evaluated.
_TOOL_CONTEXT = re.compile(r"(?:\w+\.)*ToolContext(?:\[|$)")
#: More wrong fields than this are counted, not listed.
_MAX_PROBLEMS = 10


class FunctionTool(Generic[P, R]):
    """A function that is also a tool. Calling it calls the function, unchecked.

    The host takes the object itself where it takes a tool class: in ``register_tool`` and as a
    descriptor's entry.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        effect: Effect = "execute",
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
    ) -> None:
        self.parameters = _check_function(function, effect, name)
        update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self.effect = effect
        self.timeout = _check_limit(self.name, "timeout", timeout, (int, float))
        self.concurrency = _check_limit(self.name, "concurrency", concurrency, int)
        written, self.notes = read_docstring(inspect.getdoc(function) or "")
        self.description = written if description is None else description
        self._signature: _Signature | None = None
        self._plugin: type[ToolPlugin] | None = None

    @property
    def plugin(self) -> type[ToolPlugin]:
        """The class that makes a tool plugin of it alone."""
        if self.is_unbound:
            raise _unfit(
                self.name,
                "is a method of a class",
                "give an object of the class as the tool, or tool(instance.method)",
            )
        if self._plugin is None:
            self._plugin = _plugin_class(self.name, (self,), self.function.__module__)
        return self._plugin

    @property
    def is_unbound(self) -> bool:
        """Whether it is a method that needs an object of its class first."""
        return bool(self.parameters) and _is_self(self.parameters[0])

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[..., Any]:
        """The tool itself; of a method, the tool that works on the instance."""
        if instance is None or not self.is_unbound:
            return self
        return FunctionTool(
            MethodType(self.function, instance),
            effect=self.effect,
            name=self.name,
            description=self.description,
            timeout=self.timeout,
            concurrency=self.concurrency,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name!r}, effect {self.effect}>"

    @property
    def schema(self) -> dict[str, Any]:
        """``{"name", "description", "parameters"}``, a new one each time; loads pydantic."""
        described = {"description": self.description} if self.description else {}
        parameters = copy.deepcopy(self._ready().schema)
        return {"name": self.name, **described, "parameters": parameters}

    def run(self, payload: object, state: State, context: Context) -> Any:
        """Validate the payload and call the function with it; its result as it is.

        A payload that does not fit is a `ToolArgumentsError` that names each field.
        """
        signature = self._ready()
        given = {} if payload is None else payload
        if not isinstance(given, Mapping):
            raise ToolArgumentsError(
                f"tool {self.name!r} takes an object of arguments, not {type(given).__name__}",
                tool=self.name,
                hint="send the arguments as a JSON object",
            )
        arguments = signature.validate_payload(given)
        values = {"context": context, "state": state}
        for injected in signature.injected:
            arguments[injected] = (
                ToolContext(context, self.name)
                if injected in signature.contexts
                else values[injected]
            )
        call: Callable[..., Any] = self.function
        return call(**arguments)

    def _ready(self) -> _Signature:
        # Two threads may both do the work; the results are equal and either will do.
        if self._signature is None:
            self._signature = _Signature(self)
        return self._signature


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    effect: Effect = "execute",
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "execute",
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
) -> Any:
    """Make a tool of a typed function: plain, async, or a generator that yields progress first.

    The name is the function's and the description its docstring's first paragraph, unless given.
    What each parameter is for is read from an ``Args:`` section (Google, NumPy or Sphinx style) or
    from ``Annotated[type, "text"]``. Parameters of the type `ToolContext`, and those called
    ``context`` and ``state`` that are untyped or typed ``Context`` and ``State``, are filled by the
    host and not shown to the model. A method becomes a tool of each object of its class.

    ``effect`` says what a call does to the world: ``read``, ``write``, ``execute`` or ``network``.
    After ``timeout`` seconds nobody waits for a call any more; ``concurrency`` is how many calls
    one run may have at once.

    A function that cannot be a tool is a `ContractError` at once; a type that has no JSON Schema is
    one when the schema is asked for.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return FunctionTool(
            function,
            effect=effect,
            name=name,
            description=description,
            timeout=timeout,
            concurrency=concurrency,
        )

    return decorate if function is None else decorate(function)


def tools(
    *functions: Callable[..., Any], name: str, label: str = "", version: str = ""
) -> type[ToolPlugin]:
    """One tool plugin class of several functions, called ``name``.

    Functions that are not decorated get the effect ``execute``.
    """
    if not _NAME.fullmatch(name):
        raise _unfit(name, "is no plugin id", "use letters, digits, and _ . : - after the first")
    made = tuple(each if isinstance(each, FunctionTool) else tool(each) for each in functions)
    names = [each.name for each in made]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice or not made:
        raise ContractError(
            f"tool plugin {name!r} has "
            + (f"two tools called {', '.join(twice)}" if twice else "no tools"),
            plugin=name,
            hint="give one of them another name" if twice else "pass the functions it consists of",
        )
    attributes = {"label": label, "version": version}
    return _plugin_class(name, made, made[0].__module__, **attributes)


def plugin_of_tools(given: object) -> object:
    """What the host takes for a tool plugin, of whatever a program gives it as a tool.

    A plain function becomes a tool that can do anything, and an object with decorated methods a
    plugin called after its class; everything else is given back as it is. The class of such an
    object is refused: nobody but the program knows how to make one.
    """
    if inspect.isfunction(given) or inspect.ismethod(given):
        return tool(given)
    kind = given if isinstance(given, type) else type(given)
    names = dict.fromkeys(name for owner in reversed(kind.__mro__) for name in vars(owner))
    found = [name for name in names if _is_method_tool(getattr(kind, name, None))]
    if not found:
        return given
    if given is kind:
        raise ContractError(
            f"{kind.__name__} is a class with tools as its methods",
            plugin=kind.__name__,
            hint=f"give an object of it: {kind.__name__}(…)",
        )
    return tools(*(getattr(given, name) for name in found), name=kind.__name__)


def _is_method_tool(value: object) -> bool:
    return isinstance(value, FunctionTool) and value.is_unbound


class _FunctionPlugin(ToolPlugin):
    """A tool plugin whose tools are functions."""

    _tools: ClassVar[Mapping[str, FunctionTool[..., Any]]] = {}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [each.schema for each in self._tools.values()]

    def execute_tool(self, tool_name: str, payload: Any, state: State, context: Context) -> Any:
        found = self._tools.get(tool_name)
        if found is None:
            raise UnknownToolError(
                f"tool plugin {self.name!r} has no tool {tool_name!r}",
                tool=tool_name,
                hint=f"it has: {', '.join(self._tools)}",
            )
        return found.run(payload, state, context)


def _plugin_class(
    name: str, made: tuple[FunctionTool[..., Any], ...], module: str, **attributes: str
) -> type[ToolPlugin]:
    return type(
        name,
        (_FunctionPlugin,),
        {
            "__doc__": made[0].description if len(made) == 1 else None,
            "__module__": module,
            "name": name,
            "effects": {each.name: each.effect for each in made},
            "timeouts": {each.name: each.timeout for each in made if each.timeout},
            "concurrency": {each.name: each.concurrency for each in made if each.concurrency},
            "_tools": {each.name: each for each in made},
            **attributes,
        },
    )


# What a function must be to be a tool.


def _check_function(
    function: Any, effect: object, name: str | None
) -> tuple[inspect.Parameter, ...]:
    """The parameters of a function that can be a tool; a `ContractError` for any other."""
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise _unfit(
            getattr(function, "__name__", type(function).__name__),
            "is not a function",
            "decorate a function; for anything else derive a class from ToolPlugin",
        )
    called = name or function.__name__
    if not _NAME.fullmatch(called):
        raise _unfit(called, "is no name for a tool", "pass name=, of letters, digits and _ . : -")
    if effect not in _EFFECTS:
        raise _unfit(
            called, f"has the effect {effect!r}", f"it must be one of {', '.join(_EFFECTS)}"
        )
    parameters = tuple(inspect.signature(function).parameters.values())
    for parameter in parameters[1 if parameters and _is_self(parameters[0]) else 0 :]:
        if parameter.kind in _REFUSED:
            raise _unfit(
                called,
                f"has the parameter {parameter.name!r}, which {_REFUSED[parameter.kind]}",
                "a model passes arguments by name: write each as an ordinary parameter",
            )
        if parameter.annotation is inspect.Parameter.empty and parameter.name not in _INJECTED:
            raise _unfit(
                called,
                f"has the parameter {parameter.name!r}, which has no type",
                "annotate it",
            )
    return parameters


def _is_self(parameter: inspect.Parameter) -> bool:
    return parameter.name == "self" and parameter.annotation is inspect.Parameter.empty


N = TypeVar("N", int, float)


def _check_limit(
    tool: str, what: str, value: N | None, kind: type[N] | tuple[type, ...]
) -> N | None:
    if value is None or (isinstance(value, kind) and not isinstance(value, bool) and value > 0):
        return value
    raise _unfit(tool, f"has the {what} {value!r}", "give a number above zero")


def _unfit(name: str, what: str, hint: str) -> ContractError:
    return ContractError(f"tool {name!r} {what}", plugin=name, hint=hint)


# Types, with pydantic.


class _Signature:
    """A function's parameters as a pydantic model.

    Fields go by neutral names with the parameters' own as aliases, because a model has attributes
    (``json``, ``copy``) that a parameter may be called after.
    """

    def __init__(self, tool: FunctionTool[..., Any]) -> None:
        try:
            from pydantic import ConfigDict, create_model
            from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
        except ImportError as error:
            raise _unfit(
                tool.name,
                "is made from its function's types with pydantic 2, which cannot be imported: "
                f"{error}",
                "pip install 'pydantic>=2.7'",
            ) from error
        types = _resolve_hints(tool)
        shown = [parameter for parameter in tool.parameters if parameter.name in types]
        self.name = tool.name
        self.injected = [each.name for each in tool.parameters if each.name not in types]
        #: Those among them that are a `ToolContext`, whatever they are called.
        self.contexts = {
            each.name
            for each in tool.parameters
            if each.name in self.injected and _wants_tool_context(each.annotation)
        }
        #: From a field of the model to its parameter.
        self.fields = {f"p{number}": parameter for number, parameter in enumerate(shown)}
        try:
            definitions: dict[str, Any] = {
                field: (hint, _field(tool, parameter, hint))
                for field, parameter in self.fields.items()
                for hint in [readable_type(types[parameter.name])]
            }
            config = ConfigDict(extra="forbid")
            self.model: type[BaseModel] = create_model(self.name, __config__=config, **definitions)
            self.schema = _json_schema(self.model)
        except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
            why = str(error).partition("\n")[0]
            raise _unfit(
                tool.name,
                f"has a parameter that JSON Schema cannot describe: {why}",
                "use types that JSON can carry, or derive a class from ToolPlugin",
            ) from error

    def validate_payload(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments to call with; what was not given is left to the function's defaults."""
        from pydantic import ValidationError

        try:
            filled = self.model.model_validate(dict(payload))
        except ValidationError as error:
            raise ToolArgumentsError(
                f"tool {self.name!r} cannot take these arguments: {_problems(error)}",
                tool=self.name,
                hint="correct the fields named and call it again",
            ) from None
        return {
            parameter.name: getattr(filled, field)
            for field, parameter in self.fields.items()
            if field in filled.model_fields_set or parameter.default is inspect.Parameter.empty
        }


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in found]
    more = len(told) - _MAX_PROBLEMS
    return "; ".join(told[:_MAX_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _resolve_hints(tool: FunctionTool[..., Any]) -> dict[str, Any]:
    """The types of the parameters that the model fills, by name."""
    written = {
        each.name: each.annotation
        for each in tool.parameters
        if not (_is_injected(each) or _wants_tool_context(each.annotation))
    }
    origin = inspect.unwrap(tool.function)
    # Parameters only: what a function returns need not be known at run time.
    holder = SimpleNamespace(__annotations__=written)
    try:
        types = get_type_hints(holder, getattr(origin, "__globals__", {}), include_extras=True)
    except Exception as error:
        raise _unfit(
            tool.name,
            f"has a type that cannot be read: {error}",
            "define or import it at the top of the module, not under TYPE_CHECKING and not inside "
            "a function",
        ) from error
    return {
        parameter: hint
        for parameter, hint in types.items()
        if parameter not in _INJECTED or _without_none(hint) != Context
    }


def _is_injected(parameter: inspect.Parameter) -> bool:
    """Whether it is untyped, or typed by a name that may exist for type checkers only."""
    if parameter.name not in _INJECTED or parameter.annotation is inspect.Parameter.empty:
        return parameter.name in _INJECTED
    if not isinstance(parameter.annotation, str):
        return False
    alternatives = {part.strip() for part in parameter.annotation.split("|")} - {"None"}
    wanted = _INJECTED[parameter.name]
    return {each.rpartition(".")[2] for each in alternatives} == {wanted}


def _wants_tool_context(annotation: Any) -> bool:
    """Whether a parameter is a `ToolContext`, also where its own type cannot be read."""
    if isinstance(annotation, str):
        return _TOOL_CONTEXT.match(annotation) is not None
    return (get_origin(annotation) or annotation) is ToolContext


def _without_none(hint: Any) -> Any:
    rest = [each for each in get_args(hint) if each is not NoneType]
    return rest[0] if NoneType in get_args(hint) and len(rest) == 1 else hint


def _field(tool: FunctionTool[..., Any], parameter: inspect.Parameter, hint: Any) -> Any:
    from pydantic import Field
    from pydantic.fields import FieldInfo

    if isinstance(parameter.default, FieldInfo):
        raise _unfit(
            tool.name,
            f"has a Field as the default of {parameter.name!r}, which a plain call would receive",
            "write Annotated[type, Field(…)] and an ordinary default",
        )
    settings: dict[str, Any] = {"alias": parameter.name}
    if parameter.default is not inspect.Parameter.empty:
        settings["default"] = parameter.default
    beside = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if not any(isinstance(each, FieldInfo) and each.description for each in beside):
        texts = [each for each in beside if isinstance(each, str)]
        if description := (texts[-1] if texts else tool.notes.get(parameter.name)):
            settings["description"] = description
    return Field(**settings)


def _json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's schema without the titles that pydantic makes up: they only cost tokens."""
    from pydantic.json_schema import GenerateJsonSchema

    class Plain(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def emit_warning(self, kind: Any, detail: str) -> None:
            """A default that JSON cannot carry is left out; the function still has it."""

    schema = model.model_json_schema(by_alias=True, schema_generator=Plain)
    schema.pop("title", None)
    for name, definition in schema.get("$defs", {}).items():
        if definition.get("title") == name:
            del definition["title"]
    return schema
