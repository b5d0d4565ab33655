"""Names with numbers, so that columns hold numbers."""

from __future__ import annotations

from typing import Final

from attrs import define, field

OTHERS: Final = "(others)"


@define(eq=False)
class GrowingNames:
    """The names that were seen so far, in the order in which they came: the position of one is its number.

    Beyond *most* names all further ones are `OTHERS`, so that what readers keep is bounded.
    """

    most: int
    names: list[str] = field(init=False, factory=list)
    _numbers: dict[str, int] = field(init=False, factory=dict)

    def number(self, name: str) -> int:
        """The number of *name*, a new one if it was not seen before."""
        found = self._numbers.get(name)
        if found is not None:
            return found
        if len(self.names) >= self.most - 1:
            name = OTHERS
            if name in self._numbers:
                return self._numbers[name]
        number = self._numbers[name] = len(self.names)
        self.names.append(name)
        return number

    def get(self, name: str) -> int | None:
        """The number of *name*; None if it has none."""
        return self._numbers.get(name)

    def __len__(self) -> int:
        return len(self.names)
