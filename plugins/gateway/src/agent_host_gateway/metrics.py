"""Counters of one process, and their text as Prometheus reads it."""

from __future__ import annotations

from collections import Counter, defaultdict

__all__ = ["Metrics"]

_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """What happened since the process began."""

    def __init__(self) -> None:
        self.active = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._tokens: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, list[int]] = {}
        self._sums: defaultdict[str, float] = defaultdict(float)

    def note_request(self, door: str, status: int, seconds: float) -> None:
        self._requests[door, status] += 1
        counts = self._seconds.setdefault(door, [0] * (len(_BUCKETS) + 1))
        counts[next((i for i, most in enumerate(_BUCKETS) if seconds <= most), len(_BUCKETS))] += 1
        self._sums[door] += seconds

    def note_tokens(self, model: str, given: int, made: int) -> None:
        self._tokens[model, "input"] += given
        self._tokens[model, "output"] += made

    def write(self) -> str:
        lines = [
            "# HELP agent_host_gateway_active_requests Requests that are carried out now.",
            "# TYPE agent_host_gateway_active_requests gauge",
            f"agent_host_gateway_active_requests {self.active}",
            "# HELP agent_host_gateway_requests_total Requests by door and status.",
            "# TYPE agent_host_gateway_requests_total counter",
        ]
        for (door, status), count in sorted(self._requests.items()):
            labels = f'door="{door}",status="{status}"'
            lines.append(f"agent_host_gateway_requests_total{{{labels}}} {count}")
        lines += [
            "# HELP agent_host_gateway_tokens_total Tokens by model and direction.",
            "# TYPE agent_host_gateway_tokens_total counter",
        ]
        for (model, direction), count in sorted(self._tokens.items()):
            labels = f'model="{_escape(model)}",direction="{direction}"'
            lines.append(f"agent_host_gateway_tokens_total{{{labels}}} {count}")
        name = "agent_host_gateway_request_seconds"
        lines += [f"# HELP {name} How long requests took.", f"# TYPE {name} histogram"]
        for door, counts in sorted(self._seconds.items()):
            below = 0
            for most, count in zip((*map(str, _BUCKETS), "+Inf"), counts, strict=True):
                below += count
                lines.append(f'{name}_bucket{{door="{door}",le="{most}"}} {below}')
            lines.append(f'{name}_sum{{door="{door}"}} {self._sums[door]:.6f}')
            lines.append(f'{name}_count{{door="{door}"}} {below}')
        return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
