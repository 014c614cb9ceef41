"""pluggy's managers of the roles: who is registered, in which order, and how folds run.

There is one manager for each role, because hooks of one name take different arguments in different
roles. Every hook that runs once a request, a run or a process is a call of ``manager.hook.<name>``;
hooks that run for every chunk are called directly, from what the manager says is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, cast

import pluggy

from agent_hookspecs.authoring.partial import plain
from agent_hookspecs.errors import AgentError, CollisionError, ContractError
from agent_hookspecs.markers import PROJECT
from agent_hookspecs.specs import SPECS, Hook, SpecRole, hooks_of
from agent_host.plugins.implementation import Implementation, guard_implementation
from agent_host.plugins.implementations import Implementations

__all__ = ["RoleManager", "Tolerate", "Watch"]

#: Told of an implementation that has failed; the hook goes on without its result.
Tolerate = Callable[[Implementation, AgentError], None]
#: Shown the state before ``init``; gives what is shown it after each plugin has had its turn.
Watch = Callable[[Any], Callable[[Any], None]]

#: The host's own folds; no plugin can be called that.
_HOST = "<folds of the host>"
_NO_MARKS: pluggy.HookimplOpts = {
    "wrapper": False,
    "hookwrapper": False,
    "optionalhook": False,
    "tryfirst": False,
    "trylast": False,
    "specname": None,
}


@cache
def _spec_marks(spec: type, name: str) -> pluggy.HookspecOpts | None:
    return pluggy.PluginManager(PROJECT).parse_hookspec_opts(spec, name)


class RoleManager(pluggy.PluginManager):
    """The plugins of one role, registered so that pluggy calls them in the given order.

    While ``tolerate`` is set, an implementation that fails is passed over: the hook goes on from
    the values before it, of which it then got only copies. ``report`` is told of failures of hooks
    that go on in any case. ``watch_state`` is shown every state that ``init`` comes to.
    """

    def __init__(
        self,
        role: SpecRole,
        plugins: Sequence[tuple[str, Implementations]] = (),
        *,
        tolerate: Tolerate | None = None,
        report: Tolerate | None = None,
    ) -> None:
        super().__init__(PROJECT)
        self.role = role
        self.tolerate = tolerate
        self.report = report
        self.watch_state: Watch | None = None
        # What pluggy has registered, looked up once for each hook.
        self._implementations: dict[str, tuple[Implementation, ...]] = {}
        self._functions: dict[str, tuple[Callable[..., Any], ...]] = {}
        self._owners: dict[tuple[str, str], pluggy.HookCaller] = {}
        self._implemented: set[str] = set()
        self.add_hookspecs(SPECS[role])
        # pluggy calls the latest first.
        for name, implementations in reversed(plugins):
            self._register_plugin(name, implementations)
        # Last, so that the folds are called first and leave nothing for pluggy to call.
        self.register(_Functions(self._fold_functions()), _HOST)
        self._look_up()

    def _look_up(self) -> None:
        """Forget what was looked up, and see anew which hooks have something to do."""
        self._implementations.clear()
        self._functions.clear()
        self._owners.clear()
        self._implemented = {
            hook
            for hook in hooks_of(self.role)
            if any(each.plugin_name != _HOST for each in self._hookimpls(hook))
        }

    def _hookimpls(self, hook: str) -> list[pluggy.HookImpl]:
        """What pluggy calls, in the order in which it does."""
        found: list[pluggy.HookImpl] = getattr(self.hook, hook).get_hookimpls()
        return found[::-1]

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> pluggy.HookimplOpts | None:
        """What is registered says by itself how; the marks of a plugin were read before."""
        options: pluggy.HookimplOpts | None = plugin.options.get(name)
        return options

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> pluggy.HookspecOpts | None:
        """The marks of a specification, which are the same for every manager of a role."""
        return _spec_marks(module_or_class, name)

    def _register_plugin(self, name: str, implementations: Implementations) -> None:
        if self.has_plugin(name):
            raise CollisionError(
                f"two {self.role} plugins are called {name!r}",
                plugin=name,
                hint="rename one, or register only one of them",
            )
        functions = _Functions(
            (implementation, guard_implementation(implementation, self._fail))
            for several in implementations.values()
            for implementation in several
        )
        try:
            self.register(functions, name)
        except pluggy.PluginValidationError as error:
            raise ContractError(
                f"plugin {name!r}: {error}",
                plugin=name,
                hint="the hooks reference has the signature of every hook",
            ) from error

    def drop_plugin(self, name: str) -> None:
        """Call a plugin no more."""
        self.unregister(name=name)
        self._look_up()

    def implements(self, hook: str) -> bool:
        """Whether any plugin has something to do with the hook, a wrapper included."""
        return hook in self._implemented

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        """The plugins' own implementations of a hook, in the order in which they are called."""
        known = self._implementations.get(hook)
        if known is None:
            known = self._implementations[hook] = tuple(
                cast(_Functions, hookimpl.plugin).implementations[hookimpl.function]
                for hookimpl in self._hookimpls(hook)
                if hookimpl.plugin_name != _HOST and not hookimpl.wrapper
            )
        return known

    def _plugin_functions(self, hook: str) -> tuple[Callable[..., Any], ...]:
        """The functions that a fold calls one after the other."""
        known = self._functions.get(hook)
        if known is None:
            known = self._functions[hook] = tuple(
                hookimpl.function
                for hookimpl in self._hookimpls(hook)
                if hookimpl.plugin_name != _HOST and not hookimpl.wrapper
            )
        return known

    def implementation(self, plugin: str, hook: str) -> Implementation | None:
        """The implementation that one plugin has of a hook."""
        return next((i for i in self.implementations(hook) if i.plugin == plugin), None)

    def owner(self, plugin: str, hook: str) -> pluggy.HookCaller:
        """The hook as a call to one plugin alone, for hooks that go to their owner."""
        known = self._owners.get((plugin, hook))
        if known is None:
            others = [other for name, other in self.list_name_plugin() if name != plugin]
            known = self._owners[plugin, hook] = self.subset_hook_caller(hook, others)
        return known

    def ask(self, plugin: str, hook: str, **arguments: Any) -> Any:
        """What one plugin answers; None if it does not implement the hook."""
        answer = self.owner(plugin, hook)(**arguments)
        if hooks_of(self.role)[hook].combining.mode == "collect":
            return next(iter(answer), None)
        return answer

    def _fail(self, implementation: Implementation, error: BaseException) -> None:
        skips = implementation.hook.combining.skips
        tolerate = self.tolerate or (self.report if skips else None)
        if tolerate is None:
            implementation.raise_failure(error)
        tolerate(implementation, implementation.failure(error))

    def _fold_functions(self) -> Iterable[tuple[Hook, Callable[..., Any]]]:
        for hook in hooks_of(self.role).values():
            if hook.combining.mode == "fold":
                places = tuple(hook.args.index(name) for name in hook.combining.over)
                yield hook, _fold_factory(hook.name, hook.args)(self._fold, hook, places)

    def _fold(self, hook: Hook, places: tuple[int, ...], *arguments: Any) -> Any:
        """Run the plugins' implementations of a fold, each on what the previous one returned.

        ``places`` are those of the arguments that go on.
        """
        values = list(arguments)
        isolated = self.tolerate is not None or hook.combining.skips
        watch = None
        if self.watch_state is not None and hook.name == "init":
            watch = self.watch_state(values[places[0]])
        for function in self._plugin_functions(hook.name):
            given = _copy_values(values, places) if isolated else values
            try:
                result = function(*given)
            finally:
                if watch is not None:
                    # It may have changed something before it failed.
                    watch(given[places[0]])
            if result is not None:
                if watch is not None:
                    watch(result)
                parts = result if len(places) > 1 else (result,)
                for place, value in zip(places, parts, strict=True):
                    values[place] = value
        return tuple([values[p] for p in places]) if len(places) > 1 else values[places[0]]


class _Functions:
    """What pluggy gets to see of a plugin: a function for each of its implementations."""

    def __init__(self, functions: Iterable[tuple[Implementation | Hook, Any]]) -> None:
        self.options: dict[str, pluggy.HookimplOpts] = {}
        self.implementations: dict[Any, Implementation] = {}
        # The last of a hook goes first and has the hook's own name, by which some versions of
        # pluggy tell who implements it. pluggy registers by name and calls the latest first.
        for described, function in reversed([*functions]):
            name = described.name if isinstance(described, Hook) else described.hook.name
            attribute, number = name, 0
            while attribute in self.options:
                number += 1
                attribute = f"{name}_{number:04}"
            setattr(self, attribute, function)
            self.options[attribute] = self._options(described)
            if isinstance(described, Implementation):
                self.implementations[function] = described

    @staticmethod
    def _options(described: Implementation | Hook) -> pluggy.HookimplOpts:
        if isinstance(described, Hook):
            # The fold runs first and has a result, so pluggy leaves the plugins' own to it.
            return {**_NO_MARKS, "specname": described.name, "tryfirst": True}
        return {
            **_NO_MARKS,
            "specname": described.hook.name,
            "wrapper": described.wrapper,
            "tryfirst": described.first,
            "trylast": described.last,
        }

    def __dir__(self) -> Iterable[str]:
        return self.options


def _copy_values(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    """The arguments with copies of what is folded, so that a failure leaves no half-made change."""
    return [plain(value) if place in places else value for place, value in enumerate(values)]


@cache
def _fold_factory(name: str, args: tuple[str, ...]) -> Callable[..., Any]:
    # Source text, because pluggy reads the names of arguments off the code.
    given = ", ".join(args)
    source = (
        f"def make(fold, hook, places):\n    return lambda {given}: fold(hook, places, {given})\n"
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    make: Callable[..., Any] = namespace["make"]
    return make
