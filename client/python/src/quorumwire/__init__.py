"""Values that many submit are decided in one order, and delivered to learners in that order, whichever machine dies.

    with quorumwire.open("client.toml") as client:
        instance = client.submit(b"anna pays 3 to bob")
        for delivery in client.deliver(learner=1):
            apply(delivery.value)
            client.checkpoint(1, delivery.instance)

The configuration file says who decides: replicas, or a Paxos deployment. `open_async` gives the same to asyncio.
An error is one of the classes below `Error`, with the library's text.
"""

from ._async_client import AsyncClient, AsyncDeliveries, open_async
from ._client import Client, Deliveries, open
from ._errors import (
    AnswerGoneError,
    ArgumentError,
    BusyError,
    ConfigurationError,
    Error,
    FullError,
    HandleError,
    InternalError,
    NoLearnerError,
    NotCarriedOutError,
    NotDecidedError,
    NotLetInError,
    OutcomeUnknownError,
    TooLargeError,
    TrimmedError,
)
from ._handle import Delivery, Recovered, State

__all__ = [
    "AnswerGoneError",
    "ArgumentError",
    "AsyncClient",
    "AsyncDeliveries",
    "BusyError",
    "Client",
    "ConfigurationError",
    "Deliveries",
    "Delivery",
    "Error",
    "FullError",
    "HandleError",
    "InternalError",
    "NoLearnerError",
    "NotCarriedOutError",
    "NotDecidedError",
    "NotLetInError",
    "OutcomeUnknownError",
    "Recovered",
    "State",
    "TooLargeError",
    "TrimmedError",
    "open",
    "open_async",
]
