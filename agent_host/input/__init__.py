"""What a run is given: text, pictures, sounds and other files, as one core message.

`files` are the values a program writes down, `media_types` says what data is by its content,
`prompt` makes a message of them all, and `acceptance` refuses what a provider does not take.
"""

from __future__ import annotations

from agent_host.input.acceptance import refuse_unsupported
from agent_host.input.errors import InputError
from agent_host.input.files import Audio, File, Image
from agent_host.input.prompt import Part, Prompt, make_message

__all__ = [
    "Audio",
    "File",
    "Image",
    "InputError",
    "Part",
    "Prompt",
    "make_message",
    "refuse_unsupported",
]
