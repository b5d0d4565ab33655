"""Which host ports are taken where: sparse, because few pods take any."""

from collections.abc import Iterable, Mapping

from trio_sched.objects.pod_requests import HostPort

_NO_ROWS: Mapping[int, set[str]] = {}


class HostPortIndex:
    """(protocol, port) → row → addresses. A plain set per row, without counting, as kube-scheduler keeps it."""

    __slots__ = ("_by_port", "_by_row")

    def __init__(self) -> None:
        self._by_port: dict[tuple[str, int], dict[int, set[str]]] = {}
        self._by_row: dict[int, set[HostPort]] = {}

    def rows(self, protocol: str, port: int) -> Mapping[int, set[str]]:
        """Rows on which the port is taken, with the addresses."""
        return self._by_port.get((protocol, port), _NO_ROWS)

    def of_row(self, row: int) -> set[HostPort]:
        """Everything taken on *row*."""
        return set(self._by_row.get(row, ()))

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Take *ports* on *row*."""
        for port in ports:
            self._by_port.setdefault((port.protocol, port.port), {}).setdefault(row, set()).add(port.ip)
            self._by_row.setdefault(row, set()).add(port)

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Free *ports* on *row*; those that are not taken there are ignored."""
        taken = self._by_row.get(row)
        if taken is None:
            return
        for port in ports:
            if port not in taken:
                continue
            taken.remove(port)
            rows = self._by_port[port.protocol, port.port]
            rows[row].discard(port.ip)
            if not rows[row]:
                del rows[row]
            if not rows:
                del self._by_port[port.protocol, port.port]
        if not taken:
            del self._by_row[row]

    def move(self, old_row: int, new_row: int) -> None:
        """The node at *old_row* is at *new_row* now."""
        ports = self.of_row(old_row)
        self.remove(old_row, ports)
        self.add(new_row, ports)
