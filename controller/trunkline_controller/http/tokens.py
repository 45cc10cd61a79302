"""Whose token a request carries, and what that lets it ask: an operator's all, an agent's its own polls, and one for
DataNodes to announce pipelines and to end them. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from ..mirror.permits import SETTING, PermittedAgent
from ..refusal import SettingsError
from .access import Headers, Refusal, bearer

MIRRORS = "/v1/mirrors"
AGENTS = "/v1/mirror-agents"
BRIDGES = "/v1/mirror-switches"

_NO_TOKEN = Refusal(
    401,
    "a bearer token is required",
    "send Authorization: Bearer with what is in the controller's http.token_file (trunkline qos: --token-file)",
)


@dataclass(frozen=True)
class Caller:
    """Who asks: an operator, unless it is an agent or only announces."""

    agent: PermittedAgent | None = None
    announces: bool = False

    def refusal(self, method: str, path: str, agents_have_tokens: bool) -> Refusal | None:
        """Why it may not ask this, if it may not."""
        if self.agent is not None:
            own = f"{BRIDGES if self.agent.bridge else AGENTS}/{self.agent.name}"
            if (method, path) == ("POST", own):
                return None
            return Refusal(
                403,
                f"the token is that of agent {self.agent.name}, which may ask for POST {own} and nothing else",
                "name the agent as mirror.agents of the controller has it, with bridge = true there for a bridge's; or "
                "ask with the token in http.token_file",
            )
        if self.announces:
            if (method, path) == ("POST", MIRRORS) or (method == "DELETE" and path.startswith(f"{MIRRORS}/")):
                return None
            return Refusal(
                403,
                f"the token is for announcing pipelines and ending them, by {MIRRORS}, and for nothing else",
                "ask with the token in the controller's http.token_file",
            )
        if agents_have_tokens and method == "POST" and path.startswith((f"{AGENTS}/", f"{BRIDGES}/")):
            return Refusal(
                403,
                "agents have tokens of their own here",
                "give the agent its own with token_file, as mirror.agents of the controller names it",
            )
        return None


OPERATOR = Caller()


class Tokens:
    """All that are taken. Raises SettingsError where one is of two."""

    def __init__(
        self,
        operator: bytes | None = None,
        announcer: bytes | None = None,
        agents: Mapping[str, PermittedAgent] | None = None,
    ) -> None:
        self._is_open = operator is None
        self._agents_have_tokens = agents is not None
        # By digest: how long a look takes says nothing of a token.
        self._callers: dict[bytes, Caller] = {}
        if operator is not None:
            self._callers[_digest(operator)] = OPERATOR
        if announcer is not None:
            self._add("mirror.announce_token_file", announcer, Caller(announces=True))
        for agent in (agents or {}).values():
            self._add(f"{SETTING}: {agent.name}", agent.token, Caller(agent))

    def _add(self, setting: str, token: bytes, caller: Caller) -> None:
        if self._callers.setdefault(_digest(token), caller) is not caller:
            raise SettingsError(setting, "has a token that is in use for something else", "make one of its own")

    def caller(self, headers: Headers, method: str, path: str) -> Caller | Refusal:
        """Of a request for the network's state."""
        token = bearer(headers)
        found = None if token is None else self._callers.get(_digest(token))
        if found is None and not self._is_open:
            return _NO_TOKEN
        caller = found or OPERATOR
        return caller.refusal(method, path, self._agents_have_tokens) or caller


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
