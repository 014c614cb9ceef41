"""The names of the GenAI conventions of OpenTelemetry, at the one version that is used here.

They are written down, and not imported: the package that has them is one of tests, which compare.
"""

from __future__ import annotations

__all__ = [
    "DURATION_BUCKETS",
    "SCHEMA_URL",
    "TOKEN_BUCKETS",
    "provider_name",
]

#: The version of the conventions.
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_SEED = "gen_ai.request.seed"
REQUEST_STOP_SEQUENCES = "gen_ai.request.stop_sequences"
RESPONSE_ID = "gen_ai.response.id"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
CONVERSATION = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOKEN_TYPE = "gen_ai.token.type"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

OPERATION_DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"
TIME_TO_FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"

#: The host's counts, and what the conventions call them.
USAGE = {
    "input": INPUT_TOKENS,
    "output": OUTPUT_TOKENS,
    "cached_input": CACHE_READ_TOKENS,
    "cache_write": CACHE_WRITE_TOKENS,
    "reasoning": REASONING_TOKENS,
}
TOKEN_BUCKETS = tuple(4.0**power for power in range(14))
DURATION_BUCKETS = tuple(0.01 * 2**power for power in range(14))

#: Vendors that the conventions know under another name than their plugins have.
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}


def provider_name(plugin: str) -> str:
    """What the conventions call a provider plugin; those that they do not know as they are."""
    return _PROVIDERS.get(plugin, plugin)
