"""The classes of mistakes: what authors get wrong, and whether the kit promises to see it.

A breakage is of one kind. Where the kit's promise does not reach, as with what only one vendor has,
a test of the package sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of mistakes; ``promised`` says whether the kit alone has to see them."""

    sentence: str
    promised: bool = True


KINDS: dict[str, Kind] = {
    "knobs": Kind("A setting does not reach the API, takes another's place, or is made up."),
    "claims": Kind("Tags say less, or more, than the plugin can do."),
    "exact text": Kind("Texts are trimmed, joined, escaped or normalised on their way."),
    "exact bytes": Kind("What was sent is not sent again as it was, so that prompt caches miss."),
    "answers": Kind("Something that an answer had is not in the message."),
    "strange keys": Kind("Something is sent that the API does not know."),
    "endings": Kind("How an answer ended is lost or wrong."),
    "instructions": Kind("System messages are lost, merged or moved."),
    "media": Kind("Pictures and files are dropped, changed, or read from where they must not."),
    "calls": Kind("Calls lose their name, id, order or arguments."),
    "results": Kind("Results are not beside their calls, or do not say that they failed."),
    "reasoning": Kind("Reasoning or its signature is lost, moved, or shown to strangers."),
    "display": Kind("What is shown while it comes is not what is kept."),
    "usage": Kind("Tokens are counted twice, not at all, or under another name."),
    "errors": Kind("A refusal becomes an error of another kind, or loses what the API said."),
    "retries": Kind("What can get better is not tried again, or what cannot is."),
    "broken streams": Kind("An answer that broke off looks complete, or a half-built call runs."),
    "shared instances": Kind("Something of a request is kept on the plugin's instance or class."),
    "batches": Kind("Lines of a batch are lost, not found again, or read as what they are not."),
    "addresses": Kind("Base URL, path, timeout or key do not go where they were meant to."),
    "models": Kind("The list of models is wrong, or made up when there is none."),
    "blocking": Kind("The event loop waits, for a server, a file or a clock."),
    "cost": Kind("A long answer costs its square."),
    "secrets": Kind("A key is seen where it should not be."),
    "packages": Kind("Descriptor and code disagree, a hook is misspelt, or importing does work."),
    "gating": Kind("A plugin takes part when it should not, or the other way round."),
    "what others keep": Kind("State, payload, partials or natives of other plugins are changed."),
    "persistence": Kind("A feature keeps something outside of the session."),
    "declarations": Kind("A tool is declared without words, or with a schema that is none."),
    "effects": Kind("A tool does more to the world than it says."),
    "tool behaviour": Kind("A tool does not keep to its schema, its name, or its end."),
    "stores": Kind("A store loses, mixes up or does not find what it was given."),
    "the vendor's own": Kind("Something that only one vendor has is wrong.", promised=False),
}
