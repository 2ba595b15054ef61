"""Parse C++ signatures as demanglers write them: the name of a function, its scopes, and its template arguments.

    std::enable_if<(((8)>(0))), void>::type vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, float)
    └─ return type ──────────────────────┘  └ scope ┘└ name ──────────────┘└ arguments ┘  └ parameters ┘

The traced program chooses the names, so parsing must take linear time; it stops after `_SCANNED_LENGTH` characters. A
string that does not fit the grammar is not a signature.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from holotrace import _native

_SCANNED_LENGTH = 16_384
"""Number of characters that are read from a name; the longest kernel name in public traces has about 6,000."""

_REMEMBERED_NAMES = 8_192
"""Number of names to cache; the cache saves time because the ranks of a job run the same kernels."""

_DEEPEST = 40
"""When a name is displayed, the content of groups that are nested deeper than this is replaced by `…`."""

_WORDS = re.compile(
    r"operator(?=\W)\s*(?:\(\)|\[\]|->\*?|<=>|<<=|>>=|<<|>>|[-+*/%^&|=!<>]=|&&|\|\||\+\+|--|[-+*/%^&|~!=,<>]|\"\"\s*\w+)"
    r"|::|->|'\w+'|[\w$~]+|\s+|."
)
_SYCL_KERNEL = "typeinfo name for "
"""SYCL names a kernel after a type; https://registry.khronos.org/SYCL/specs/sycl-2020/html/sycl-2020.html#sec:naming.kernels"""

_HSA_KERNEL = ".kd"
"""The suffix of a kernel descriptor's symbol on AMD; https://llvm.org/docs/AMDGPUUsage.html#symbols"""

_NAME_LENGTH = re.compile(r"L?(\d{1,4})")
_WORD = re.compile(r"[\w$~]|operator\W")
_UNNAMED_SCOPES = frozenset({"anonymous namespace", "unnamed"})
_AFTER_PARAMETERS = frozenset({"const", "volatile", "noexcept", "&", "&&", "mutable"})
_CLOSERS = {"<": ">", "(": ")", "[": "]", "{": "}"}
_PLAIN_HEAD = re.compile(r"(void )?((?:(?:\(anonymous namespace\)|<unnamed>|\w+)::)*[A-Za-z_]\w*)(?=([<(])|$)")


@dataclass
class _Group:
    """The content of a pair of brackets; `is_open` if the closing bracket is missing."""

    bracket: str
    items: list[_Item] = field(default_factory=list)
    is_open: bool = True


_Item: TypeAlias = "str | _Group"


@dataclass
class _OpenGroups:
    """The groups whose closing bracket has not been read yet, outermost first.

    certain  the index in `groups` of each group that `(`, `[` or `{` opened; a group that `<` opened is uncertain,
             because a `<` may be a comparison
    """

    groups: list[_Group] = field(default_factory=list)
    certain: list[int] = field(default_factory=list)

    def opened(self, bracket: str) -> _Group:
        """Open a new innermost group, and return it."""
        if bracket != "<":
            self.certain.append(len(self.groups))
        self.groups.append(_Group(bracket))
        return self.groups[-1]

    def close(self, text: str) -> bool:
        """Close the innermost group that this bracket can end; any `<` still open inside it was a comparison."""
        if text == ">" and self.groups and self.groups[-1].bracket == "<":
            self.groups.pop().is_open = False
            return True
        if not self.certain or _CLOSERS[self.groups[self.certain[-1]].bracket] != text:
            return False
        position = self.certain.pop()
        self.groups[position].is_open = False
        del self.groups[position:]
        return True


@dataclass
class _Part:
    """One part of a qualified name: an identifier, an operator, or a group such as `{lambda(int)#1}`."""

    name: str
    arguments: _Group | None = None
    parameters: _Group | None = None
    is_unnamed: bool = False


@dataclass(frozen=True)
class Signature:
    """The name of a function.

    scopes     the named namespaces and functions around the function, outermost first
    name       the name of the function; for a lambda, the name of the enclosing function and `lambda`
    arguments  the template arguments of the function, each without namespaces; None if there are none
    """

    scopes: tuple[str, ...]
    name: str
    arguments: tuple[str, ...] | None

    def __str__(self) -> str:
        """Return the name with its template arguments."""
        return self.name if self.arguments is None else f"{self.name}<{', '.join(self.arguments)}>"


def signature(name: str) -> Signature | None:
    """Parse a signature, mangled or not; return None for any other string, such as `Memcpy HtoD (Pinned -> Device)`."""
    return _signature(name[:_SCANNED_LENGTH])


@lru_cache(maxsize=_REMEMBERED_NAMES)
def _signature(name: str) -> Signature | None:
    parts = _qualified_function(_items(demangled(name)))
    if not parts:
        return None
    scopes, (last, *_) = _scopes_and_name(parts)
    return Signature(tuple(part.name for part in scopes), _shown_name(last, scopes), _arguments(last.arguments))


def _arguments(group: _Group | None) -> tuple[str, ...] | None:
    return None if group is None else tuple(_text(argument, 0) for argument in _between_commas(group.items))


def function_name(name: str) -> str:
    """Return only the qualified function name, without return type, anonymous namespaces, template arguments or parameters.

    This name shows what a kernel does, while template arguments may contain any functors and types. If the string is
    not a signature, return its beginning up to the first bracket.
    """
    return _function_name(name[:_SCANNED_LENGTH])


@lru_cache(maxsize=_REMEMBERED_NAMES)
def _function_name(name: str) -> str:
    text = demangled(name)
    plain = _PLAIN_HEAD.match(text)
    if plain and (plain[1] or plain[3] != "<"):  # without `void` before it, `name<…>` may be the return type
        return plain[2].replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    parts = _qualified_function(_items(text))
    if not parts:
        return re.split("[<(]", text, maxsplit=1)[0]
    scopes, (last, *_) = _scopes_and_name(parts)
    return "::".join(part.name for part in (*scopes, *(() if last.is_unnamed else (last,))))


def demangled(name: str) -> str:
    """Demangle a name; if this fails, return only the function (`ns::f`) or, if this fails too, the name as it is.

    The profiler demangles most names, but not very long ones or ones that it cannot parse. Very long names are
    truncated.
    """
    read = name[:_SCANNED_LENGTH].removeprefix(_SYCL_KERNEL).removesuffix(_HSA_KERNEL)
    return _demangled(read) if read.startswith("_Z") else read


@lru_cache(maxsize=_REMEMBERED_NAMES)
def _demangled(name: str) -> str:
    return _native.demangled(name) or _mangled_head(name) or name


def _mangled_head(name: str) -> str | None:
    """Return `sgl_hip::activation::act_and_mul_kernel` for `_ZN7sgl_hip10activation18act_and_mul_kernelI14…`.

    Source: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangle.source-name
    """
    position, parts = (3 if name.startswith("_ZN") else 2), list[str]()
    while length := _NAME_LENGTH.match(name, position):
        position = length.end() + int(length[1])
        parts.append(name[length.end() : position])
    named = [part for part in parts if not part.startswith("_GLOBAL__N_")]
    return "::".join(named) if named and position <= len(name) else None


def _items(name: str) -> list[_Item]:
    """Return the words of a name, with the content of brackets as groups."""
    top: list[_Item] = []
    within = _OpenGroups()
    before = ""
    for match in _WORDS.finditer(name, 0, _SCANNED_LENGTH):
        text, items = match[0], within.groups[-1].items if within.groups else top
        if text in {"(", "[", "{"} or (text == "<" and _opens_template(before, items, within.groups)):
            items.append(within.opened(text))
        elif not (text in _CLOSERS.values() and within.close(text)):
            items.append(text)
        before = text
    return top


def _opens_template(before: str, items: list[_Item], within: list[_Group]) -> bool:
    """Whether `<` opens a template group; inside `(`, `[` or `{`, a `<` after a space is a comparison."""
    if _WORD.match(before) and not before[0].isdigit():
        return True
    starts = before in {"", "::", ",", "<", "("} or (before.isspace() and (not within or within[-1].bracket == "<"))
    return starts and not (items and before.isspace() and isinstance(items[-2:][0], _Group) and bool(within))


def _qualified_function(items: list[_Item]) -> list[_Part] | None:
    """Return the parts of the qualified function name; None if the items are not a signature."""
    parts: list[_Part] = []
    position, had_return_type = 0, False
    while position < len(items):
        item = items[position]
        if _stands_alone(item):
            position += 1
        else:
            following, end = _chain(items, position)
            if not following:
                return None
            had_return_type = had_return_type or bool(parts)
            parts, position = following, end
    is_function = bool(parts) and (parts[-1].parameters is not None or not had_return_type or items[0] == "void")
    return parts if is_function else None


def _stands_alone(item: _Item) -> bool:
    """Whether an item is a space, a qualifier, the `*` of a return type, or an annotation such as `[clone .kd]`."""
    if isinstance(item, _Group):
        return item.bracket == "[" and _flat(item).startswith(("clone ", "with "))
    return item.isspace() or item in _AFTER_PARAMETERS or item == "*"


def _chain(items: list[_Item], start: int) -> tuple[list[_Part], int]:
    """Read `part::part::part` from `start`; return its parts and the position after it."""
    parts: list[_Part] = []
    position = start + (items[start] == "::")
    while position < len(items):
        part = _part(items[position])
        if part is None:
            break
        position += 1
        position = _with_groups(part, items, position)
        parts.append(part)
        position = _past_qualifiers(items, position)
        if position >= len(items) or items[position] != "::":
            break
        position += 1
    return parts, position


def _part(item: _Item) -> _Part | None:
    if isinstance(item, str):
        if item.startswith(("'lambda", "'unnamed")):  # LLVM's demangler writes unnamed types in this form
            return _Part(item.strip("'"), is_unnamed=True)
        return _Part(item) if _WORD.match(item) or item.startswith("operator") else None
    inside = _flat(item)
    if inside in _UNNAMED_SCOPES:
        return _Part("", is_unnamed=True)
    if item.bracket == "{" or (item.bracket == "<" and inside.startswith(("lambda", "unnamed"))):
        return _Part(_lambda_name(item, inside), is_unnamed=True)
    return None


def _with_groups(part: _Part, items: list[_Item], position: int) -> int:
    """Add to a part the template arguments and parameters that follow its name; return the position after them."""
    if part.name == "operator":  # a conversion such as `operator bool`
        while position < len(items) and not (isinstance(items[position], _Group)):
            position += 1
    if part.name.startswith("operator") and _is_template_after_space(items, position):
        position += 1
    for bracket in ("[", "<", "("):
        while position < len(items) and isinstance(group := items[position], _Group) and group.bracket == bracket:
            if bracket == "<":
                part.arguments = group
            if bracket == "[" and not _flat(group).startswith("abi:"):
                return position
            if bracket == "(":
                if _flat(group) in _UNNAMED_SCOPES:
                    return position
                part.parameters = group
            position += 1
    return position


def _is_template_after_space(items: list[_Item], position: int) -> bool:
    """Whether a space and a template group follow, as in `operator<< <int>`."""
    space, group = (*items[position : position + 2], "", "")[:2]
    return space == " " and isinstance(group, _Group) and group.bracket == "<"


def _past_qualifiers(items: list[_Item], position: int) -> int:
    """Skip the qualifiers of an enclosing function, such as ` const` in `f() const::g`.

    Return the position of the `::` after these qualifiers, or `position` if no `::` follows.
    """
    following = position
    while following < len(items) and isinstance(item := items[following], str):
        if not (item.isspace() or item in _AFTER_PARAMETERS):
            break
        following += 1
    return following if following < len(items) and items[following] == "::" else position


def _scopes_and_name(parts: list[_Part]) -> tuple[list[_Part], list[_Part]]:
    """Return the named scopes around a function, and the function itself.

    The call operator of a class or lambda is dropped: the class or lambda itself then counts as the function.
    """
    kept = [part for part in parts if not part.name.startswith("operator(") or part is parts[0]]
    kept = [part for part in kept if part.name] or parts
    return [part for part in kept[:-1] if not part.is_unnamed], kept[-1:]


def _shown_name(part: _Part, scopes: list[_Part], depth: int = 0) -> str:
    if not (part.is_unnamed and scopes):
        return part.name or "unnamed"
    within = scopes[-1].arguments
    return f"{scopes[-1].name}{_text_of_item(within, depth) if within else ''}::{part.name}"


def _lambda_name(group: _Group, inside: str) -> str:
    """Return a name such as `lambda(float)#1`; its parameters and number distinguish the lambdas of one function."""
    number = re.search(r"#(\d+)|instance (\d+)", inside)
    kind = "lambda" if inside.lstrip("'").startswith("lambda") else "unnamed"
    taken = "".join(_flat(item) for item in group.items[:4] if isinstance(item, _Group))
    plain = re.sub(r"\w+::", "", taken)
    return f"{kind}{f'({plain})' if plain else ''}{f'#{number[1] or number[2]}' if number else ''}"


def _flat(group: _Group) -> str:
    """Join the strings among the first 40 items of a group; skip the groups inside it."""
    return "".join(item for item in group.items[:40] if isinstance(item, str))


def _between_commas(items: list[_Item]) -> list[list[_Item]]:
    parts: list[list[_Item]] = [[]]
    for item in items:
        if item == ",":
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def _text(items: list[_Item], depth: int) -> str:
    """Return the text of a template argument, reducing each qualified name to its last part."""
    texts: list[str] = []
    position = 0
    while position < len(items):
        parts, end = _chain(items, position)
        if parts:
            texts.append(_text_of_name(parts, depth))
        else:
            end = position + 1
            texts.append(_text_of_item(items[position], depth))
        position = max(end, position + 1)
    return "".join(texts).strip()


def _text_of_name(parts: list[_Part], depth: int) -> str:
    scopes, (last, *_) = _scopes_and_name(parts)
    groups = [group for group in (last.arguments, None if last.is_unnamed else last.parameters) if group]
    return _shown_name(last, scopes, depth) + "".join(_text_of_item(group, depth) for group in groups)


def _text_of_item(item: _Item, depth: int) -> str:
    if isinstance(item, str):
        return " " if item.isspace() else item
    if depth >= _DEEPEST:
        return f"{item.bracket}…{_CLOSERS[item.bracket]}"
    inside = ", ".join(_text(part, depth + 1) for part in _between_commas(item.items))
    return f"{item.bracket}{inside}{'' if item.is_open else _CLOSERS[item.bracket]}"
