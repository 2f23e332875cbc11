"""Reads pickles of plain containers and numpy arrays. Nothing in them is executed: this is a machine of its own.

Python's unpickler imports and calls what a pickle names, and trusts the sizes that it claims. Here a name is only a
name, looked up in a short list; what it stands for is built by code that lies here, and every byte is in the file.
"""

from __future__ import annotations

import pickletools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from muster.files.safe_open import FileTooLarge, read_regular_file
from muster.readers.checkpoints.arrays import (
    PickledArray,
    PickledDType,
    PickleNotPlain,
    UnfinishedValue,
    is_numpy_array,
    make_array,
    make_dtype,
    make_scalar,
)

MOST_PICKLE_BYTES = 64 << 20
MOST_OPCODES = 2_000_000  # a few seconds; a pickle of arrays has thousands
MOST_VALUES = 20_000_000  # that it unfolds to: lists within lists may hold each other many times over
MOST_COPIED = 128 << 20
MOST_CONTAINERS = 400_000  # an empty one takes up to 216 bytes, and one letter in the file
_SCALARS = (str, int, float, bool, bytes, type(None), complex)
_KEY_ITEMS = 16
_KEY_BITS = 256
_MARK = object()


class PickledName:
    """What a pickle calls by name. It is no more than that."""

    def __init__(self, name: str) -> None:
        self.name = name


def read_plain_pickle(path: str) -> Any:
    """Raises PickleNotPlain, which says why, and OSError."""
    try:
        return load_plain_pickle(read_regular_file(path, MOST_PICKLE_BYTES))
    except FileTooLarge as error:
        raise PickleNotPlain(str(error.strerror)) from None


def load_plain_pickle(data: bytes) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that are none: no concern of a reader
            found = _PickleMachine().run(data)
        return _check_plain_all_through(found)
    except PickleNotPlain:
        raise
    except (MemoryError, RecursionError):
        raise PickleNotPlain("it would take too much memory") from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise PickleNotPlain(f"the pickle is damaged: {error}") from None


class _PickleMachine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.copied = 0
        self.containers = 0

    def run(self, data: bytes) -> Any:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count > MOST_OPCODES:
                raise PickleNotPlain(f"it has more than {MOST_OPCODES} steps")
            if opcode.name == "STOP":
                break
            if opcode.name in _CONTAINERS:
                self.containers += 1
                if self.containers > MOST_CONTAINERS:
                    raise PickleNotPlain(f"it has more than {MOST_CONTAINERS} containers")
            step = _OPCODE_STEPS.get(opcode.name)
            if step is None:
                raise PickleNotPlain(f"it wants {opcode.name}, which is not done here: {_ONLY}")
            step(self, argument)
        (found,) = self.stack
        return found

    # -- the stack

    def pop(self) -> Any:
        found = self.stack.pop()
        if found is _MARK:
            raise ValueError("a mark where a value belongs")
        return found

    def top(self, kind: type) -> Any:
        found = self.stack[-1]
        if type(found) is not kind:
            raise ValueError(f"a {kind.__name__} is expected")
        return found

    def since_mark(self) -> list[Any]:
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _MARK:
                found = self.stack[at + 1 :]
                del self.stack[at:]
                return found
        raise ValueError("no mark")

    def keep(self, place: int) -> None:
        if self.stack[-1] is _MARK:
            raise ValueError("a mark is no value")
        found = self.memo[place] = self.stack[-1]
        if isinstance(found, UnfinishedValue):
            found.places.append(place)

    def copying(self, amount: int) -> None:
        """A value that is copied again and again would fill any memory."""
        self.copied += amount
        if self.copied > MOST_COPIED:
            raise PickleNotPlain("it would take too much memory")

    # -- what is built

    def reduce(self) -> None:
        arguments, called = self.pop(), self.pop()
        if not isinstance(called, PickledName) or type(arguments) is not tuple:
            raise PickleNotPlain(f"it calls something that has no name: {_ONLY}")
        made = _MAKERS.get(called.name)
        if made is None:
            raise PickleNotPlain(f"it calls {called.name}, which is not done here: {_ONLY}")
        self.stack.append(made(self, arguments))

    def build(self) -> None:
        state, unfinished = self.pop(), self.pop()
        if not isinstance(unfinished, UnfinishedValue):
            raise PickleNotPlain(f"it fills an object of a class: {_ONLY}")
        built = unfinished.build(state)
        for place in unfinished.places:
            self.memo[place] = built
        self.stack.append(built)

    def fill(self, items: list[Any]) -> None:
        into = self.top(dict)
        if len(items) % 2:
            raise ValueError("a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            into[_checked_key(key)] = value

    def name(self, module: str, name: str) -> None:
        if not (type(module) is str and type(name) is str):
            raise ValueError("a name is expected")
        full = f"{_MODULES.get(module, module).replace('numpy._core.', 'numpy.core.')}.{name}"
        if full not in _NAMES:
            raise PickleNotPlain(f"it asks for {full[:80]}, which is not built here: {_ONLY}")
        self.stack.append(PickledName(full))


_CONTAINERS = frozenset(
    {"EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "LIST", "DICT"}
    | {"FROZENSET", "REDUCE"}
)
_ONLY = "only plain containers, numbers, texts and numpy arrays are"
_MODULES = {"__builtin__": "builtins"}


def _checked_key(value: Any) -> Any:
    """Of a dict or a set. A tuple of tuples of tuples, or a number of a million digits, may take for ever to hash."""
    parts = value if type(value) is tuple else (value,)
    if len(parts) > _KEY_ITEMS or not all(map(_is_quick_to_hash, parts)):
        raise PickleNotPlain("a key is no plain value")
    return value


def _is_quick_to_hash(value: Any) -> bool:
    return isinstance(value, _SCALARS) and not (type(value) is int and value.bit_length() > _KEY_BITS)


# -- the steps


def _push_argument(machine: _PickleMachine, argument: Any) -> None:
    machine.stack.append(argument)


def _step_pushing(make: Callable[[], Any]) -> Callable[[_PickleMachine, Any], None]:
    return lambda machine, _: machine.stack.append(make())


def _step_making_tuple(count: int) -> Callable[[_PickleMachine, Any], None]:
    def step(machine: _PickleMachine, _: Any) -> None:
        items = [machine.pop() for _ in range(count)]
        machine.stack.append(tuple(reversed(items)))

    return step


def _step_from_mark(make: Callable[[list[Any]], Any]) -> Callable[[_PickleMachine, Any], None]:
    return lambda machine, _: machine.stack.append(make(machine.since_mark()))


def _dict_of_items(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise ValueError("a key without a value")
    return {_checked_key(key): value for key, value in zip(items[::2], items[1::2], strict=True)}


def _append_item(machine: _PickleMachine, _: Any) -> None:
    item = machine.pop()
    machine.top(list).append(item)


def _append_items(machine: _PickleMachine, _: Any) -> None:
    items = machine.since_mark()
    machine.top(list).extend(items)


def _set_item(machine: _PickleMachine, _: Any) -> None:
    value, key = machine.pop(), machine.pop()
    machine.fill([key, value])


def _add_set_items(machine: _PickleMachine, _: Any) -> None:
    items = machine.since_mark()
    machine.top(set).update(map(_checked_key, items))


def _push_named(machine: _PickleMachine, argument: Any) -> None:
    module, _, name = str(argument).partition(" ")
    machine.name(module, name)


def _push_stack_named(machine: _PickleMachine, _: Any) -> None:
    name, module = machine.pop(), machine.pop()
    machine.name(module, name)


def _push_from_memo(machine: _PickleMachine, argument: Any) -> None:
    machine.stack.append(machine.memo[int(argument)])


_OPCODE_STEPS: Mapping[str, Callable[[_PickleMachine, Any], Any]] = {
    **dict.fromkeys(
        (
            "INT",
            "BININT",
            "BININT1",
            "BININT2",
            "LONG",
            "LONG1",
            "LONG4",
            "STRING",
            "BINSTRING",
            "SHORT_BINSTRING",
            "BINBYTES",
            "SHORT_BINBYTES",
            "BINBYTES8",
            "UNICODE",
            "SHORT_BINUNICODE",
            "BINUNICODE",
            "BINUNICODE8",
            "FLOAT",
            "BINFLOAT",
        ),
        _push_argument,
    ),
    "BYTEARRAY8": lambda machine, argument: machine.stack.append(bytes(argument)),
    "NONE": _step_pushing(lambda: None),
    "NEWTRUE": _step_pushing(lambda: True),
    "NEWFALSE": _step_pushing(lambda: False),
    "EMPTY_LIST": _step_pushing(list),
    "EMPTY_DICT": _step_pushing(dict),
    "EMPTY_SET": _step_pushing(set),
    "EMPTY_TUPLE": _step_pushing(tuple),
    "TUPLE1": _step_making_tuple(1),
    "TUPLE2": _step_making_tuple(2),
    "TUPLE3": _step_making_tuple(3),
    "TUPLE": _step_from_mark(tuple),
    "LIST": _step_from_mark(list),
    "DICT": _step_from_mark(_dict_of_items),
    "FROZENSET": _step_from_mark(lambda items: frozenset(map(_checked_key, items))),
    "APPEND": _append_item,
    "APPENDS": _append_items,
    "SETITEM": _set_item,
    "ADDITEMS": _add_set_items,
    "SETITEMS": lambda machine, _: machine.fill(machine.since_mark()),
    "MARK": lambda machine, _: machine.stack.append(_MARK),
    "POP": lambda machine, _: machine.stack.pop(),
    "POP_MARK": lambda machine, _: machine.since_mark(),
    "DUP": lambda machine, _: machine.stack.append(machine.stack[-1]),
    "GET": _push_from_memo,
    "BINGET": _push_from_memo,
    "LONG_BINGET": _push_from_memo,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda machine, argument: machine.keep(int(argument))),
    "MEMOIZE": lambda machine, _: machine.keep(len(machine.memo)),
    "GLOBAL": _push_named,
    "STACK_GLOBAL": _push_stack_named,
    "REDUCE": lambda machine, _: machine.reduce(),
    "BUILD": lambda machine, _: machine.build(),
    "PROTO": lambda _, __: None,
    "FRAME": lambda _, __: None,
}


# -- what stands for the names


def _start_array(_: _PickleMachine, arguments: tuple[Any, ...]) -> Any:
    if not (arguments and isinstance(arguments[0], PickledName) and arguments[0].name == "numpy.ndarray"):
        raise PickleNotPlain("an array of another class than numpy's")
    return PickledArray()  # its size and its bytes come later


def _array_from_buffer(_: _PickleMachine, arguments: tuple[Any, ...]) -> Any:
    raw, dtype, shape, order = arguments
    return make_array(dtype, shape, raw, fortran=order == "F")


def _encode_latin_bytes(machine: _PickleMachine, arguments: tuple[Any, ...]) -> bytes:
    """How Python 3 writes bytes where the protocol has none."""
    text, coding = arguments
    if type(text) is not str or coding not in ("latin1", "latin-1"):
        raise PickleNotPlain(f"a text in {coding!r}")
    machine.copying(len(text))
    return text.encode("latin-1")


def _container_items(machine: _PickleMachine, arguments: tuple[Any, ...]) -> list[Any]:
    if not arguments:
        return []
    if type(arguments[0]) not in (list, tuple):
        raise PickleNotPlain("a container that is made of something odd")
    machine.copying(64 * len(arguments[0]))
    return list(arguments[0])


def _ordered_dict(machine: _PickleMachine, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    pairs = _container_items(machine, arguments)
    if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs):
        raise PickleNotPlain("a dictionary that is made of something odd")
    return {_checked_key(key): value for key, value in pairs}


def _default_dict(_: _PickleMachine, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """What it would do about missing keys is of no interest here."""
    if len(arguments) > 1 or not all(each is None or isinstance(each, PickledName) for each in arguments):
        raise PickleNotPlain("a defaultdict that is made of something odd")
    return {}


def _plain_bytes(machine: _PickleMachine, arguments: tuple[Any, ...]) -> bytes:
    """Never of a number: that many zeros would be made."""
    if not arguments:
        return b""
    if len(arguments) == 2:
        return _encode_latin_bytes(machine, arguments)
    if type(arguments[0]) is not bytes:
        raise PickleNotPlain("bytes that are made of something odd")
    return arguments[0]


def _complex_number(_: _PickleMachine, arguments: tuple[Any, ...]) -> complex:
    real, imaginary = (float(each) if type(each) in (int, float) else None for each in arguments)
    if real is None or imaginary is None:
        raise PickleNotPlain("a complex number that is made of something odd")
    return complex(real, imaginary)


_MAKERS: Mapping[str, Callable[[_PickleMachine, tuple[Any, ...]], Any]] = {
    "numpy.core.multiarray._reconstruct": _start_array,
    "numpy.core.multiarray.scalar": lambda _, arguments: make_scalar(*arguments),
    "numpy.core.numeric._frombuffer": _array_from_buffer,
    "numpy.dtype": lambda _, arguments: make_dtype(*arguments),
    "collections.OrderedDict": _ordered_dict,
    "collections.defaultdict": _default_dict,
    "collections.deque": _container_items,
    "builtins.set": lambda machine, arguments: set(map(_checked_key, _container_items(machine, arguments))),
    "builtins.frozenset": lambda machine, arguments: frozenset(map(_checked_key, _container_items(machine, arguments))),
    "builtins.bytearray": _plain_bytes,
    "builtins.bytes": _plain_bytes,
    "builtins.complex": _complex_number,
    "_codecs.encode": _encode_latin_bytes,
}
# the others are only ever handed on: as the class of an array, or as what a defaultdict would make
_KINDS = ("list", "dict", "int", "float", "str")
_NAMES = frozenset({*_MAKERS, "numpy.ndarray", *(f"builtins.{each}" for each in _KINDS)})


# -- what came out


def _check_plain_all_through(found: Any) -> Any:
    """It is plain all through, holds itself nowhere, and does not unfold to more than anybody could walk."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()
    ahead: list[tuple[Any, bool]] = [(found, False)]
    while ahead:
        value, seen = ahead.pop()
        inner = _inner_values(value)
        if seen:
            open_.discard(id(value))
            sizes[id(value)] = 1 + sum(sizes.get(id(each), 1) for each in inner)
            if sizes[id(value)] > MOST_VALUES:
                raise PickleNotPlain(f"it unfolds to more than {MOST_VALUES} values")
            continue
        if id(value) in open_:
            raise PickleNotPlain("a container holds itself")
        if not inner or id(value) in sizes:
            if is_numpy_array(value):
                sizes[id(value)] = 1 + int(value.size)
            continue
        open_.add(id(value))
        ahead.append((value, True))
        ahead += [(each, False) for each in inner]
    return found


def _inner_values(value: Any) -> list[Any]:
    kind = type(value)
    if kind is dict:
        return list(value.values())
    if kind in (list, tuple):
        return list(value)
    if kind in (set, frozenset) or kind in _SCALARS or is_numpy_array(value):
        return []
    if isinstance(value, PickledDType):
        raise PickleNotPlain("a dtype without an array")
    if isinstance(value, UnfinishedValue):
        raise PickleNotPlain("an array that is never filled")
    raise PickleNotPlain(
        f"a name without a meaning: {value.name}" if isinstance(value, PickledName) else "something odd"
    )
