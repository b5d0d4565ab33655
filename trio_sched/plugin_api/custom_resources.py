"""Kinds that a plugin declares: custom resources, and kinds of Kubernetes that have no class here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, Type, TypeVar, get_type_hints, overload  # noqa: UP035

import msgspec
import msgspec.inspect
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
_GROUPS_WITHOUT_DOT: Final = frozenset({"", "apps", "autoscaling", "batch", "extensions", "policy"})
"""Those of Kubernetes; others have the name of a domain. The first one is the core group."""
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
    """Declares a custom resource, or a kind of Kubernetes; objects of it are read as instances of *type*.

    Use it wherever a kind is named: in ``watches``, as key of ``writes``, in ``on(…)`` and in the methods of the
    handle. All plugins of a configuration must declare one resource in the same way::

        QUOTA = CustomResource("example.com", "v1", "Quota", type=Quota)


        class Quotas:
            watches = (QUOTA,)
            writes = {QUOTA.status: ("patch",)}

    Kinds of Kubernetes that plugins do not read by their names are declared in the same way, those of the core group
    with the group ``""``: ``CustomResource("batch", "v1", "CronJob")``, ``CustomResource("", "v1", "Secret")``.
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
            plural: as in URLs; by default that of the kind in English, ``policies`` for ``Policy``.
            namespaced: whether objects are in namespaces.
            type: a `msgspec.Struct`, attrs class or dataclass with a field ``metadata: ObjectMeta``; fields that it
                lacks are left out. ``rename="camel"`` of a Struct reads ``maxPods`` into ``max_pods``. None: objects
                are instances of `CustomObject`, with all fields.

        Raises:
            ValueError: a name is not one of Kubernetes.
            TypeError: *type* cannot be decoded from JSON, has no metadata, or reads a field in snake case.
        """
        plural = plural or plural_of(f"{kind}")
        for what, value, matches, like in (
            ("group", group, _is_group, "example.com"),
            ("version", version, _is_version, "v1 or v1alpha1"),
            ("kind", kind, _is_kind, "Quota"),
            ("plural", plural, _is_plural, "quotas"),
        ):
            if not isinstance(value, str) or not (matches(value) or (what == "group" and not value)):
                raise ValueError(f"CustomResource: {what} {value!r} must be written like {like}")
        if "." not in group and group not in _GROUPS_WITHOUT_DOT:
            raise ValueError(f"CustomResource: group {group!r} has no dot, and is none of Kubernetes either")
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
        """``plural.version.group``: its name in cluster events; ``plural.version`` in the core group."""
        return f"{self.plural}.{self.version}.{self.group}".rstrip(".")

    @property
    def api_version(self) -> str:
        """``group/version``, as in manifests; just ``v1`` in the core group."""
        return f"{self.group}/{self.version}".lstrip("/")

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
    if snake := next(_fields_in_snake_case(msgspec.inspect.type_info(of)), None):
        raise TypeError(f"CustomResource: {snake}")
    return decode


def _fields_in_snake_case(root: msgspec.inspect.Type) -> Iterator[str]:
    """Which fields, also of types inside, would be looked for under a name that no kind of Kubernetes has."""
    waiting: list[Any] = [root]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            waiting += one
        if not isinstance(one, msgspec.inspect.Type | msgspec.inspect.Field) or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [getattr(one, name) for name in one.__struct_fields__]
        if isinstance(one, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
            for part in one.fields:
                if part.encode_name == part.name and "_" in part.name.strip("_"):
                    yield _in_snake_case(one.cls, part.name)


def _in_snake_case(of: Any, name: str) -> str:
    first, *others = name.split("_")
    camel = first + "".join(word.capitalize() for word in others)
    how = "write" if issubclass(of, Struct) else "make it a"
    return (
        f"{of.__name__} reads its field {name} from {name!r}, but fields of Kubernetes are written like {camel}; {how} "
        f'class {of.__name__}(msgspec.Struct, rename="camel", frozen=True). If it is called {name} in the cluster, '
        f"give a field with another name that one: {first}: … = msgspec.field(name={name!r})"
    )


def plural_of(kind: str) -> str:
    """The English plural of *kind* in lower case, which most resources have in URLs."""
    kind = kind.lower()
    if kind.endswith("y") and kind[-2:-1] not in tuple("aeiou"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith(("s", "x", "ch", "sh")) else f"{kind}s"


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
