"""A reader of the live page that keeps what its browser would."""

from typing import Any

from attrs import define, field

PARTS = ("nodes", "pending")


@define(eq=False)
class LiveReader:
    """The rows by id, the names, and the summary."""

    rows: dict[str, dict[int, dict[str, Any]]] = field(factory=lambda: {part: {} for part in PARTS})
    names: dict[str, list[str]] = field(factory=dict)
    causes: list[dict[str, Any]] = field(factory=list)
    summary: dict[str, Any] = field(factory=dict)
    sequence: int = 0

    def take_snapshot(self, data: dict[str, Any]) -> None:
        assert data["version"] == 1
        self.rows = {part: {} for part in PARTS}
        for part in PARTS:
            self._add(part, data[part])
        self._take_rest(data)

    def take_delta(self, data: dict[str, Any]) -> None:
        """Follow a change; all of it has to be about rows that there are."""
        assert data["sequence"] == self.sequence + 1
        for part in PARTS:
            changes = data.get(part, {})
            for id_ in changes.get("removed", ()):
                del self.rows[part][id_]
            for column, (ids, values) in changes.get("changed", {}).items():
                for id_, value in zip(ids, values, strict=True):
                    if column.startswith("device_"):
                        self.rows[part][id_].setdefault(column, None)
                    assert self.rows[part][id_][column] != value
                    self.rows[part][id_][column] = value
            self._add(part, changes.get("added", {}))
        self._take_rest(data)

    def _take_rest(self, data: dict[str, Any]) -> None:
        self.sequence = data["sequence"]
        self.names |= {name: list(data[name]) for name in ("zones", "pools", "devices") if name in data}
        self.causes = data.get("causes", self.causes)
        self.summary = self.summary | data.get("summary", {})

    def _add(self, part: str, columns: dict[str, list[Any]]) -> None:
        for row in zip(*columns.values(), strict=True):
            values = dict(zip(columns, row, strict=True))
            assert values["id"] not in self.rows[part]
            self.rows[part][values["id"]] = values

    # --- by name ----------------------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes by name, with the names of their zones and pools, and their devices by name."""
        found = {}
        for row in self.rows["nodes"].values():
            shown = {name: value for name, value in row.items() if not name.startswith("device_") and name != "id"}
            shown["zone"], shown["pool"] = self.names["zones"][row["zone"]], self.names["pools"][row["pool"]]
            for number, device in enumerate(self.names["devices"]):
                shown[device] = row.get(f"device_{number}")
            assert shown["name"] not in found
            found[shown["name"]] = shown
        return found

    def pending(self) -> dict[str, dict[str, Any]]:
        """The pods that wait, by ``namespace/name``, with the texts of their causes."""
        found = {}
        for row in self.rows["pending"].values():
            cause = None if row["cause"] is None else self.causes[row["cause"]]["text"]
            found[f"{row['namespace']}/{row['name']}"] = {**row, "cause": cause}
        return found
