"""The hooks that plugins of any role may implement besides their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from agent_hookspecs.events import Event
from agent_hookspecs.markers import hookspec
from agent_hookspecs.messages import Config, Context

if TYPE_CHECKING:
    from agent_hookspecs.batch import BatchEngine
    from agent_hookspecs.store.protocol import SessionStore

__all__ = ["HostSpec"]


class HostSpec(Protocol):
    """Broadcast by the host to every plugin it has loaded."""

    @hookspec("collect", per_chunk=True)
    def observe_event(self, event: Event, context: Context) -> bool | None:
        """See an event of a run as it is delivered.

        ``context["run_path"]`` tells runs apart: the id of the run, which a `ChildEvent` goes on
        with the ids of its calls; ``context["agent"]`` is its agent, if it has one. The keys that
        the caller adds are there, too. A plugin whose ``observes_fragments`` is False sees only the
        first piece of each answer. One that returns False for ``request_started`` is shown nothing
        more of that run before its next request; of anything else the result is ignored.

        Fires: for every event of a run; it must be quick.
        May change: nothing.
        On exception: it is logged, never passed on.
        """

    @hookspec("collect", result=("headers",), optional=True)
    def outgoing_headers(self, request: dict[str, str], context: Context) -> dict[str, str] | None:
        """Headers to add to a request that is about to be sent, such as those of a trace.

        ``request`` has its ``method`` and its ``url`` without credentials and query. What says who
        is asking, what belongs to the connection, and what the request has already is not taken.
        ``context`` is that of the request; ``context["run_path"]`` is as in ``observe_event``, with
        the ids of the calls by which runs were made. Tools are not asked.

        Of a tool call the method is ``CALL`` and the address ``tool:`` with the tool's name;
        ``context`` has ``run_path``, ``agent``, ``call_id`` and the keys of the caller. Of what is
        returned the tool is given ``traceparent`` and ``tracestate``, as ``trace_context`` of its
        own context.

        Fires: once for each request that the host sends, after ``build_request``; for a provider
        that does its own I/O it does not fire. Once for each tool call of a run that is carried
        out, after the event ``tool_started``.
        May change: nothing but through its result.
        On exception: the request goes without them and a warning says so.
        """

    @hookspec("first")
    def open_session_store(self, url: str, config: Config) -> SessionStore | None:
        """A session store for a URL whose scheme the plugin knows, else None.

        The descriptor lists the scheme under ``stores``. ``config`` is what stands
        in ``store_options``: ``content``, ``keep_days``, and settings of the store's own.

        Fires: when the application opens its store.
        May change: nothing.
        On exception: the application reports it and does not start.
        """

    @hookspec("first")
    def open_batch_engine(self, name: str, config: Config) -> BatchEngine | None:
        """An engine for the lines of a batch, if the plugin has one of that name, else None.

        The descriptor lists the name under ``engines``. ``config`` is what the caller has set for
        the engine.

        Fires: when a batch begins.
        May change: nothing.
        On exception: the batch reports it and does not begin.
        """

    @hookspec("first", result=("secret",), optional=True)
    def resolve_secret(self, name: str, config: Config) -> str | None:
        """The key that is kept under a name, else None.

        ``name`` is a provider's plugin id, or what ``api_key_name`` says. ``config`` has the
        settings of the request without what is secret. The descriptor says
        ``resolves_secrets``. Whoever answers comes before the host's own key store.

        Fires: when a request needs a key that neither its config nor the environment has, and
        again when that key was refused. It may block.
        May change: nothing.
        On exception: the request fails with it.
        """

    @hookspec("first", result=("prices",), optional=True)
    def model_prices(
        self, provider: str, model: str, base_url: str | None, time: float
    ) -> dict[str, Any] | None:
        """What a model costs at a time, in seconds since 1970; None if that is not known.

        US dollars for a million tokens, as numbers or decimals: ``input``, ``output``, and where
        they are billed otherwise ``cached_input``, ``cache_write``, ``cache_write_1h`` (of what
        `Usage` has under these names) and ``reasoning``; ``request`` and ``search`` are for one.
        ``tiers`` is a list of such prices, each for requests with an input of more tokens than its
        ``above``. ``provider`` is the plugin id; ``base_url`` is the address that requests go to,
        if the config names one: another server than the vendor's has other prices. The descriptor
        says ``knows_prices``. What stands in the config under ``prices`` comes first.

        Fires: after an answer whose provider does not tell its cost, before a request that counts
        against a budget, and for each model that is listed.
        May change: nothing.
        On exception: the cost is not known and a warning says so.
        """

    @hookspec("first")
    def cli_command(self, name: str, open_application: Callable[..., Any]) -> Any:
        """The click command for a name that the plugin's descriptor lists under ``commands``.

        ``open_application(config_file=None)`` makes the application that the other commands use,
        from that file or from where they look for one; ``with`` closes it. It has every provider's
        key, which is why it is made when the command asks, and not before.

        Fires: when that command is called, or its help is shown.
        May change: nothing.
        On exception: the command reports the plugin and exits with 1.
        """

    @hookspec("collect")
    def host_started(self, host: Any) -> None:
        """The application has its config and plugins and is about to run.

        Tools get None as ``host``: whoever has the application has every provider's key.

        Fires: once for each application.
        May change: nothing.
        On exception: it is logged, never passed on.
        """

    @hookspec("collect")
    def host_closing(self, host: Any) -> None:
        """The application is about to close; tools get None as ``host``.

        Fires: once for each application.
        May change: nothing.
        On exception: it is logged, never passed on.
        """
