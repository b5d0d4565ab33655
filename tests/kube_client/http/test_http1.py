"""Connections of HTTP/1.1 by themselves; what they send and receive is tested with the pool."""

import gc
import weakref

from trio_sched.kube_client.http.channel import SocketChannel
from trio_sched.kube_client.http.http1 import Http1Connection


def test_a_closed_connection_is_freed_without_the_garbage_collector() -> None:
    """It refers to its parser and that to it; the buffers of TLS are in between."""

    class Idle(SocketChannel):
        def __init__(self) -> None:
            self.is_closed = False

        def close(self) -> None:
            self.is_closed = True

    channel = Idle()
    gone = weakref.ref(channel)
    connection = Http1Connection(channel)
    gc.disable()
    try:
        connection.close()
        assert channel.is_closed
        del channel, connection
        assert gone() is None
    finally:
        gc.enable()
