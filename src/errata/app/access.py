"""Who may ask: names of this server, tokens, the sessions of browsers that showed one, and how often one may be wrong.

The cookie of a browser is a random number that means something to this process alone. It is not the token: who reads
it from a disk or a screen can use it while the server runs, and can sign in nowhere.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from ..core import InputError
from ..people.tokens import PeopleFile, check_token, digest

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SESSION_SECONDS = 7 * 24 * 3600.0  # since it was last used
MOST_SESSIONS = 10_000
WRONG_SECONDS = 60.0  # in which wrong tokens are counted
MOST_WRONG = 10  # of one address
MOST_WRONG_OF_ALL = 100
MOST_ADDRESSES = 10_000


@dataclass(frozen=True)
class Visitor:
    """Somebody who may ask.

    Attributes
    ----------
    person : str, optional
        Whose token it was; None where everybody has the same one, or none is asked for.
    token_digest : str
        The hash of their token.
    """

    person: str | None = None
    token_digest: str = ""


class TooManyWrong(Exception):
    """So many wrong tokens came that none is looked at for a while."""


class WrongTokens:
    """Counts wrong tokens by address and in all. clock: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_address: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque()

    def check(self, address: str) -> None:
        """Raise TooManyWrong where no token is looked at now."""
        own = self._by_address.get(address, deque())
        if self._recent(own) >= MOST_WRONG or self._recent(self._all) >= MOST_WRONG_OF_ALL:
            raise TooManyWrong

    def add(self, address: str) -> None:
        """Count one."""
        now = self._clock()
        self._by_address.setdefault(address, deque(maxlen=MOST_WRONG)).append(now)
        self._by_address.move_to_end(address)
        self._all.append(now)
        while len(self._by_address) > MOST_ADDRESSES:
            self._by_address.popitem(last=False)

    def _recent(self, times: deque[float]) -> int:
        while times and times[0] <= self._clock() - WRONG_SECONDS:
            times.popleft()
        return len(times)


class Access:
    """Who may ask, and what.

    Parameters
    ----------
    hosts : tuple of str, optional
        Names that a request may be addressed to; None, where tokens alone say who may ask.
    token : str, optional
        The one token of everybody.
    people : PeopleFile, optional
        People with tokens of their own, in whose names alone they write.
    secure : bool
        Browsers reach this server by https: they send its cookies by nothing else.
    read_only : bool
        Nobody writes.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        hosts: tuple[str, ...] | None = LOOPBACK,
        token: str | None = None,
        *,
        people: PeopleFile | None = None,
        secure: bool = False,
        read_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if hosts is None and token is None and people is None:
            raise InputError("a server that answers to any name must ask for a token; give one")
        self.hosts = hosts
        self.secure = secure
        self.read_only = read_only
        self.has_people = people is not None
        self._token = None if token is None else check_token(token)
        self._people = people
        self._clock = clock
        self._wrong = WrongTokens(clock)
        self._sessions: OrderedDict[str, tuple[Visitor, float]] = OrderedDict()

    @property
    def asks(self) -> bool:
        """Whether a token is asked for."""
        return self._token is not None or self._people is not None

    def visitor_of(self, token: str, address: str) -> Visitor | None:
        """Whose token this is; None where it is wrong, and that counts. An empty one is none."""
        if not token:
            return None
        self._wrong.check(address)
        visitor = self._known(token)
        if visitor is None:
            self._wrong.add(address)
        return visitor

    def _known(self, token: str) -> Visitor | None:
        token_digest = digest(token)
        if self._token is not None and hmac.compare_digest(token_digest, digest(self._token)):
            return Visitor(None, token_digest)
        person = None if self._people is None else self._people.person_of(token)
        return None if person is None else Visitor(person, token_digest)

    def open_session(self, visitor: Visitor) -> str:
        """A new number that stands for this visitor, for a cookie."""
        number = secrets.token_urlsafe(32)
        self._sessions[number] = (visitor, self._clock())
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return number

    def close_session(self, number: str) -> None:
        """Forget a session."""
        self._sessions.pop(number, None)

    def session_of(self, number: str) -> Visitor | None:
        """Who a cookie stands for; None where it is unknown or too old, or the person was removed."""
        if number not in self._sessions:
            return None
        visitor, used = self._sessions[number]
        if self._clock() - used > SESSION_SECONDS or not self._still_may(visitor):
            self.close_session(number)
            return None
        self._sessions[number] = (visitor, self._clock())
        self._sessions.move_to_end(number)
        return visitor

    def _still_may(self, visitor: Visitor) -> bool:
        if visitor.person is None:
            return True
        return self._people is not None and self._people.has(visitor.person, visitor.token_digest)
