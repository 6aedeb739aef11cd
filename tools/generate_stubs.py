"""Type stubs (`.pyi`) of the compiled modules (tools/generate.py writes them).

A stub says what Python sees of a `.pyx`: public constants, functions, and classes with methods, properties and attributes. It is read
off the built module: Cython puts the signature of the source, C types included, in front of every docstring (`embedsignature`). What a
function returns stands in the stub where the source annotates it, else it is `Any`.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("rt_kernels", "drivers")
HEAD = "# Generated from the built module by tools/generate.py\n"
PLAIN = {name: name for name in ("str", "bytes", "bool", "float", "int")} | {
    "list": "list[Any]",
    "set": "set[Any]",
    "type": "type[Any]",
    "tuple": "tuple[Any, ...]",
    "dict": "dict[Any, Any]",
    "frozenset": "frozenset[Any]",
}
INTEGERS = re.compile(r"(u?int(8|16|32|64)_t|(unsigned )?(char|short|int|long|long long)|Py_ssize_t|size_t|unsigned)")
# The special methods that a class of the kernels may have, as Python calls them.
SPECIAL = {
    "__len__": "(self) -> int",
    "__enter__": "(self) -> Self",
    "__exit__": "(self, *exception: object) -> None",
    "__iter__": "(self) -> Any",
    "__next__": "(self) -> Any",
    "__call__": "(self, *args: Any, **kwargs: Any) -> Any",
    "__getitem__": "(self, key: Any) -> Any",
    "__contains__": "(self, key: object) -> bool",
}


def compiled_modules(root: Path = ROOT) -> list[tuple[str, Path]]:
    """Name and source of every compiled module."""
    sources = sorted(p for package in PACKAGES for p in root.joinpath(package).rglob("*.pyx"))
    return [(".".join(p.relative_to(root).with_suffix("").parts), p) for p in sources]


def python_type(c_type: str, known: dict[str, str]) -> str:
    """Python's name of a C or Cython type; `known` has the classes of the compiled modules."""
    c_type = c_type.replace("const ", "").strip()
    if c_type in ("", "object"):
        return "Any"
    if "[" in c_type:
        return "NDArray[np.float64]" if c_type.startswith("double") else "Any"  # of other numbers: whatever has a buffer
    if c_type == "bint":
        return "bool"
    if c_type in ("double", "float"):
        return "float"
    if INTEGERS.fullmatch(c_type):
        return "int"
    if c_type in PLAIN:
        return PLAIN[c_type]
    return c_type if c_type in known else "Any"


def split_arguments(text: str) -> list[str]:
    """The arguments of a signature: commas outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def argument(text: str, known: dict[str, str]) -> str:
    """One argument of an embedded signature as a stub writes it."""
    if text in ("*", "/", "self", "cls"):
        return text
    name, has_default, default = (part.strip() for part in text.partition("="))
    if name.startswith("*"):
        return f"{name}: Any"
    c_type, name, annotation = re.fullmatch(r"(?:(.*[^\s:]) )?(\w+)(?:: (.+))?", name).groups()  # type: ignore[union-attr]
    kind = python_type(c_type or annotation or "", known)
    if not has_default:
        return f"{name}: {kind}"
    try:
        ast.literal_eval(default)
        plain = default[0] not in "([{"
    except (ValueError, SyntaxError):
        plain = False
    if default == "None" and kind != "Any":
        kind = f"{kind} | None"
    return f"{name}: {kind} = {default if plain else '...'}"


def signature(doc: str | None, known: dict[str, str]) -> tuple[str, str] | None:
    """Arguments and result of the signature in the first line of a docstring; None when there is none."""
    match = re.match(r"[\w.]+\((.*)\)(?: -> (.+))?$", (doc or "").split("\n")[0])
    if not match:
        return None
    given = split_arguments(match[1])
    if "*" in given and given[0] != "self":  # the signature of a class lacks `self`, but Cython counts it: the star stands one place late
        given.insert(given.index("*") - 1, given.pop(given.index("*")))
    arguments = [argument(a, known) for a in given]
    return ", ".join(arguments), python_type(match[2] or "", known) if match[2] != "None" else "None"


def value_type(value: object) -> str:
    """Type of a constant."""
    if isinstance(value, np.dtype):
        return "np.dtype[Any]"
    return PLAIN.get(type(value).__name__, "Any")


def function(name: str, doc: str | None, known: dict[str, str], indent: str = "", mark: str = "") -> list[str]:
    """Stub of a function or method. Raises ValueError when the module was built without `embedsignature`."""
    found = signature(doc, known)
    if found is None:
        raise ValueError(f"{name} has no signature in its docstring")
    return [f"{indent}{mark}"] * bool(mark) + [f"{indent}def {name}({found[0]}) -> {found[1]}: ..."]


def attributes(source: str, name: str, known: dict[str, str]) -> dict[str, str]:
    """Types of the `readonly` and `public` attributes that a class of the source declares."""
    body = re.search(rf"^cdef class {name}\b.*\n((?:[ \t]+.*\n|\n)*)", source, re.MULTILINE)
    found = {}
    declared = r"^\s+cdef (?:readonly|public) ([\w ]*?\w(?:\[[^\]]*\])?) ([\w, ]+)$"
    for kind, names in re.findall(declared, body[1] if body else "", re.MULTILINE):
        found |= {attribute.strip(): python_type(kind, known) for attribute in names.split(",")}
    return found


def class_stub(cls: type, source: str, known: dict[str, str]) -> list[str]:
    """Stub of one class."""
    bases = [b.__name__ for b in cls.__bases__ if b is not object]
    lines = [f"class {cls.__name__}({', '.join(bases)}):" if bases else f"class {cls.__name__}:"]
    typed = attributes(source, cls.__name__, known)
    own = vars(cls)
    if (found := signature(cls.__doc__, known)) and "cython_function" not in type(own.get("__init__")).__name__:
        lines.append(f"    def __init__({', '.join(filter(None, ('self', found[0])))}) -> None: ...")
    for name, value in own.items():
        kind = type(value).__name__
        if name == "__init__" and kind == "cython_function_or_method":
            lines += [line.replace("-> Any", "-> None") for line in function(name, value.__doc__, known, "    ")]
        elif name in SPECIAL:
            lines.append(f"    def {name}{SPECIAL[name]}: ...")
        elif name.startswith("_"):
            continue
        elif kind == "cython_function_or_method":
            lines += function(name, value.__doc__, known, "    ")
        elif isinstance(value, staticmethod) and inspect.isfunction(value.__func__):
            # a function of plain Python
            given = inspect.signature(value.__func__).parameters.values()
            words = [f"{p.name}: Any" + ("" if p.default is p.empty else " = ...") for p in given]
            lines += ["    @staticmethod", f"    def {name}({', '.join(words)}) -> Any: ..."]
        elif isinstance(value, (classmethod, staticmethod)):
            lines += function(name, value.__func__.__doc__, known, "    ", f"@{kind}")
        elif isinstance(value, property) or inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value):
            lines += [f"    {name}: {typed.get(name, 'Any')}"]
        else:
            lines.append(f"    {name}: {value_type(value)}")
    return lines if len(lines) > 1 else [f"{lines[0]} ..."]


def stub(module_name: str, source: Path, known: dict[str, str]) -> str:
    """Text of the stub of one built module."""
    module = importlib.import_module(module_name)
    body: list[str] = []
    # by name, but a class after the classes of its module that it is made from: a stub is also read by running it
    depth = {name: len(value.__mro__) if inspect.isclass(value) else 0 for name, value in vars(module).items()}
    derived = {n for n, v in vars(module).items() if inspect.isclass(v) and any(b.__module__ == module_name for b in v.__bases__)}
    for name, value in sorted(vars(module).items(), key=lambda item: (item[0] in derived and depth[item[0]], item[0])):
        if name.startswith("_") or inspect.ismodule(value):
            continue
        if getattr(value, "__module__", module_name) != module_name and (inspect.isclass(value) or callable(value)):
            continue
        if inspect.isclass(value):
            body += ["", *class_stub(value, source.read_text(), known), ""]
        elif type(value).__name__ == "cython_function_or_method":
            body += function(name, value.__doc__, known)
        elif not callable(value):
            body.append(f"{name}: {value_type(value)}")
    text = "\n".join(body)
    wanted = sorted({(where, name) for name, where in known.items() if where != module_name and re.search(rf"\b{name}\b", text)})
    imports = [f"from {where} import {', '.join(n for w, n in wanted if w == where)}" for where in dict(wanted)]
    own = [name for name, where in known.items() if where == module_name and re.search(rf": {name}\b", text)]  # may stand before its class
    typing = [name for name in ("Any", "Self") if re.search(rf"\b{name}\b", text)]
    head = [f"from typing import {', '.join(typing)}", ""] * bool(typing) + ["import numpy as np"] * ("np." in text)
    head += ["from numpy.typing import NDArray"] * ("NDArray" in text) + [""] * ("np." in text)
    head = ["from __future__ import annotations", ""] * bool(own) + head
    return HEAD + "\n".join([*head, *imports, "", text]) + "\n"


def stubs(folder: Path) -> dict[Path, str]:
    """Path below the folder and text of every stub; the modules are those that an import finds."""
    modules = compiled_modules()
    classes = {
        name: module for module, source in modules for name in re.findall(r"^(?:cdef )?class (\w+)", source.read_text(), re.MULTILINE)
    }
    return {folder / source.relative_to(ROOT).with_suffix(".pyi"): stub(name, source, classes) for name, source in modules}
