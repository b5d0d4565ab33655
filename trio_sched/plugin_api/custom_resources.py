"""Custom resources: kinds that are defined in the cluster, and that a plugin declares to read and write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, Type, TypeVar, get_type_hints, overload  # noqa: UP035

import msgspec
from attrs import define, field, frozen
from msgspec import Struct

from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.metadata import ObjectMeta

T = TypeVar("T")

_LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_is_group = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*").fullmatch
_is_version = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?").fullmatch
_is_kind = re.compile(r"[A-Z][A-Za-z0-9]*").fullmatch
_is_plural = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?").fullmatch
_WITH_METADATA: Final = "it has no field `metadata: ObjectMeta` (ObjectMeta is in trio_sched.plugin_api)"


class _Head(Struct, frozen=True, gc=False):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode_fields: Final = msgspec.json.Decoder(dict[str, Any]).decode


@define(eq=False, hash=False, slots=True)
class CustomObject(Mapping[str, Any]):
    """A custom resource as in JSON: a mapping of all its fields, which must not be changed."""

    fields: Mapping[str, Any]
    """``apiVersion``, ``kind``, ``metadata``, ``spec`` and whatever else it has."""
    metadata: ObjectMeta
    """Its metadata, typed."""

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; "" if it is in none."""
        return self.metadata.namespace

    @property
    def spec(self) -> Mapping[str, Any]:
        """``spec``; empty if it is missing."""
        return _mapping(self.fields.get("spec"))

    @property
    def status(self) -> Mapping[str, Any]:
        """``status``; empty if it is missing."""
        return _mapping(self.fields.get("status"))

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomObject) and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]  # it holds dicts


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@frozen(init=False, repr=False)
class CustomResource(Generic[T]):
    """Declares a custom resource; objects of it are read as instances of *type*.

    Use it wherever a kind is named: in ``watches``, as key of ``writes``, in ``on(…)`` and in the methods of the
    handle. All plugins of a configuration must declare one resource in the same way::

        QUOTA = CustomResource("example.com", "v1", "Quota", type=Quota)


        class Quotas:
            watches = (QUOTA,)
            writes = {QUOTA.status: ("patch",)}
    """

    group: str
    version: str
    kind: str
    plural: str
    """As in URLs."""
    namespaced: bool
    type: Type[T]  # noqa: UP006 - inside of the class, `type` is this
    """What objects are decoded into: `CustomObject` if none was given."""
    _decode: Any = field(eq=False, repr=False)
    _hash: int = field(eq=False, repr=False)

    @overload
    def __init__(
        self: CustomResource[CustomObject],
        group: str,
        version: str,
        kind: str,
        *,
        plural: str = "",
        namespaced: bool = True,
        type: None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        group: str,
        version: str,
        kind: str,
        *,
        plural: str = "",
        namespaced: bool = True,
        type: Type[T],  # noqa: UP006
    ) -> None: ...

    def __init__(
        self, group: str, version: str, kind: str, *, plural: str = "", namespaced: bool = True, type: Any = None
    ) -> None:
        """Declare a custom resource.

        Args:
            group: of the API, ``example.com``.
            version: ``v1``.
            kind: as in manifests, ``Quota``.
            plural: as in URLs; by default the kind in lower case with an ``s``.
            namespaced: whether objects are in namespaces.
            type: a `msgspec.Struct`, attrs class or dataclass with a field ``metadata: ObjectMeta``; fields that it
                lacks are left out. None: objects are instances of `CustomObject`, with all fields.

        Raises:
            ValueError: a name is not one of Kubernetes.
            TypeError: *type* cannot be decoded from JSON, or has no metadata.
        """
        plural = plural or f"{kind}s".lower()
        for what, value, matches, like in (
            ("group", group, _is_group, "example.com"),
            ("version", version, _is_version, "v1 or v1alpha1"),
            ("kind", kind, _is_kind, "Quota"),
            ("plural", plural, _is_plural, "quotas"),
        ):
            if not isinstance(value, str) or not matches(value):
                raise ValueError(f"CustomResource: {what} {value!r} must be written like {like}")
        if "." not in group:
            raise ValueError(f"CustomResource: group {group!r} has no dot, so it is none of a custom resource")
        if not isinstance(namespaced, bool):
            raise TypeError(f"CustomResource: namespaced must be True or False, not {namespaced!r}")
        decode = None if type is None else _decoder(type)
        found: Any = CustomObject if type is None else type
        number = hash((group, version, kind, plural, namespaced, found))
        self.__attrs_init__(group, version, kind, plural, namespaced, found, decode, number)

    def __hash__(self) -> int:
        return self._hash  # it is a key of what plugins read at every attempt

    def __repr__(self) -> str:
        decoded = "" if self.type is CustomObject else f", type={self.type.__qualname__}"
        scope = "" if self.namespaced else ", namespaced=False"
        named = f"{self.group!r}, {self.version!r}, {self.kind!r}, plural={self.plural!r}"
        return f"CustomResource({named}{scope}{decoded})"

    def __str__(self) -> str:
        return self.resource

    @property
    def resource(self) -> str:
        """``plural.version.group``: its name in cluster events."""
        return f"{self.plural}.{self.version}.{self.group}"

    @property
    def api_version(self) -> str:
        """``group/version``, as in manifests."""
        return f"{self.group}/{self.version}"

    @property
    def status(self) -> str:
        """Its status subresource, as key of ``writes``."""
        return f"{self.resource}/status"

    def decode(self, body: bytes) -> T:
        """An object of it from JSON.

        Raises:
            msgspec.MsgspecError: it does not fit the type.
            RecursionError: it is nested too deep.
        """
        if self._decode is None:
            found: Any = CustomObject(_decode_fields(body), _decode_head(body).metadata)
            return found  # type: ignore[no-any-return]  # then T is CustomObject
        try:
            decoded = self._decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise
        except BaseException as problem:  # a __post_init__ or a converter of the type may raise anything
            raise_interrupt(problem)
            raise msgspec.ValidationError(_described(problem)) from problem
        if not isinstance(decoded.metadata, ObjectMeta):
            raise msgspec.ValidationError("its type has replaced the metadata")
        return decoded  # type: ignore[no-any-return]  # decoded as T


Watched = str | CustomResource[Any]
"""What plugins call a kind: its name, ``plural.version.group``, or what they have declared."""


def _described(problem: BaseException) -> str:
    name = type(problem).__name__
    try:
        return f"{name}: {problem}"
    except BaseException as another:  # its __str__ may raise anything, too
        raise_interrupt(another)
        return name


def _decoder(of: Any) -> Any:
    try:
        hints = get_type_hints(of)
        decode = msgspec.json.Decoder(of).decode
    except Exception as problem:
        name = getattr(of, "__qualname__", repr(of))
        raise TypeError(f"CustomResource: type {name} cannot be decoded from JSON: {problem}") from problem
    metadata = hints.get("metadata")
    if not isinstance(of, type) or not isinstance(metadata, type) or not issubclass(metadata, ObjectMeta):
        raise TypeError(f"CustomResource: type {getattr(of, '__qualname__', of)} cannot be used: {_WITH_METADATA}")
    return decode


def as_json(one: Any) -> bytes:
    """A custom object, or any other one, as JSON."""
    return msgspec.json.encode(one.fields if isinstance(one, CustomObject) else one)


def differ(one: Any, other: Any) -> bool:
    """Whether two versions of an object differ in more than ``resourceVersion`` and ``generation``.

    True also where their types make it impossible to find that out.
    """
    try:
        return bool(_comparable(one) != _comparable(other))
    except BaseException as problem:  # nested too deep, or an __eq__ of the type raises what it likes
        raise_interrupt(problem)
        return True


def _comparable(one: Any) -> Any:
    metadata = msgspec.structs.replace(one.metadata, resource_version="", generation=0)
    if isinstance(one, Struct):
        fields = one.__struct_fields__
    elif isinstance(one, CustomObject):
        return metadata, {name: value for name, value in one.fields.items() if name != "metadata"}
    else:
        declared = type(one)
        fields = tuple(getattr(declared, "__dataclass_fields__", ())) or tuple(
            each.name for each in declared.__attrs_attrs__
        )
    return metadata, [getattr(one, name) for name in fields if name != "metadata"]
