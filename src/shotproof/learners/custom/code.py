"""Somebody's own code, by where it is: `my_heads.py:Head(epochs=10)` in a file, `python:my_package.heads:head`."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from shotproof.core.errors import InputError, Mismatch, ShotproofError, did_you_mean, first_line
from shotproof.core.trust import require_recorded_code, require_trust
from shotproof.learners.custom.generators import shared_generators
from shotproof.learners.method import CodeOrigin, Estimator, Method

PREFIX = "python:"
EXPECTED = "expected FILE.py:NAME or python:MODULE:NAME, such as my_heads.py:Head(epochs=10)"
TASK = 3  # support, labels and query: what a function is given before its options

# Without the prefix a file's path has no parentheses or quotes, which options have.
_FILE = re.compile(r"""[^("']+\.py(:|\(|$)""")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_read: dict[Path, tuple[str, ModuleType]] = {}  # files with the digest of what was read


def is_in_file(spelled: str) -> bool:
    """Whether a method is spelled by its file, without the prefix."""
    return not spelled.startswith(PREFIX) and bool(_FILE.match(spelled))


def load(place: str, options: Mapping[str, Any], folder: Path | None = None, spelled: str = "") -> Method:
    """A method from a file or module.

    Args:
        place: `my_heads.py:Head`, `my_package.heads:Head`; a class is made with the options, a function gets them by
            name after support, labels and query, an object is taken as it is
        options: values by option
        folder: what a file's path is relative to, the working folder if None
        spelled: the whole text that names it, which the user may have typed

    Returns:
        The method, whose name and spelling are those that were typed.

    Raises:
        NotTrusted: the user has neither typed it nor agreed to this very code; nothing was imported.
        InputError: the file, the module, the name or an option is not there, the code fails, or is no method.
    """
    source, _, attribute = place.rpartition(":")
    if not attribute.isidentifier() or not (source.endswith(".py") or _MODULE.fullmatch(source)):
        raise InputError(f"method '{place}': {EXPECTED}")
    code: bytes | None
    if source.endswith(".py"):
        file = Path(folder or "", Path(source).expanduser()).resolve()
        name, where = f"{Path(source).as_posix()}:{attribute}", str(file)
        code = _source(file, name)
        origin = CodeOrigin(name, options, where, _digest(code))
        require_recorded_code(_digest(code), f"method '{name}'")
    else:
        origin, where = CodeOrigin(f"{PREFIX}{source}:{attribute}", options), f"the module {source}"
        code = _module_source(source)
    # With the digest in it, consent is to this very code; the options are part of what runs.
    told = "not found" if code is None else f"digest {_digest(code)}"
    require_trust(f"method '{origin.spelling}' runs the code of {where} ({told})", spelled or origin.spelling)
    return load_again(origin)


def load_again(origin: CodeOrigin) -> Method:
    """The method of an origin, in this process, from its file as it is now.

    What it draws while it is made, the first weights of a network say, is the same in every process.
    """
    source, _, attribute = origin.name.removeprefix(PREFIX).rpartition(":")
    with shared_generators() as generators:
        generators.seed(0)
        module = _imported(source, origin.name) if origin.file is None else _read_module(Path(origin.file), origin)
        generators.seed(0)  # whether the module was read just now or before
        return _made(module, attribute, origin)


def _imported(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        hint = "; is it installed, or its folder in PYTHONPATH?" if isinstance(error, ImportError) else ""
        raise InputError(f"method '{name}': module '{module}' cannot be imported ({reason}){hint}") from error


def _read_module(file: Path, origin: CodeOrigin) -> ModuleType:
    """Run the code of a file, unless it has been run already; code that is not the origin's is refused."""
    source = _source(file, origin.name)
    digest = _digest(source)
    if digest != origin.digest:
        raise Mismatch(f"method '{origin.name}': '{file}' has changed since it was named: start again")
    known, module = _read.get(file, (None, None))
    if module is None or known != digest:
        module = _run(file, source, origin.name)
        _read[file] = digest, module
    return module


def _source(file: Path, name: str) -> bytes:
    if not file.is_file():
        near = did_you_mean(file.name, [each.name for each in file.parent.glob("*.py")])
        raise InputError(f"method '{name}': there is no file '{file}'{near}")
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"method '{name}': cannot read '{file}': {error.strerror}") from error


def _module_source(module: str) -> bytes | None:
    """Read the source of a module without importing it or its packages; None if it has none."""
    if module in sys.builtin_module_names:
        return None
    search: Sequence[str] | None = None
    spec = None
    for place in range(1, module.count(".") + 2):
        spec = PathFinder.find_spec(".".join(module.split(".")[:place]), search)
        if spec is None:
            return None
        search = spec.submodule_search_locations
    origin = spec.origin if spec is not None else None
    try:
        return Path(origin).read_bytes() if origin and spec is not None and spec.has_location else None
    except OSError:
        return None


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:16]


def _run(file: Path, source: bytes, name: str) -> ModuleType:
    """A new module of a file's code, which may import what lies beside it."""
    module = ModuleType(f"own_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # where dataclasses look for the module of a class
    sys.path.insert(0, str(file.parent))
    try:
        exec(compile(source, str(file), "exec"), vars(module))
    except Exception as error:
        del sys.modules[module.__name__]
        raise InputError(f"method '{name}': '{file}' fails: {type(error).__name__}: {first_line(error)}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _made(module: ModuleType, attribute: str, origin: CodeOrigin) -> Method:
    """What a module has under a name, as a method."""
    if not hasattr(module, attribute):
        near = did_you_mean(attribute, _offered(module))
        where = Path(origin.file).name if origin.file else f"module '{module.__name__}'"
        raise InputError(f"method '{origin.name}': {where} has no '{attribute}'{near}")
    found = getattr(module, attribute)
    if isinstance(found, type):
        check_options(origin.name, found, origin.options)
        _require_method_class(found, origin.name)
        try:
            found = found(**origin.options)
        except ShotproofError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise InputError(f"method '{origin.spelling}' cannot be made: {reason}") from error
    elif isinstance(found, FunctionType):
        check_options(origin.name, found, origin.options, data=TASK)
        if origin.options:
            found = functools.update_wrapper(functools.partial(found, **origin.options), found)
    elif origin.options:
        raise InputError(f"method '{origin.name}' takes no options: it is an object that is made already")
    method = wrap(found, f"method '{origin.name}': ")
    method._settle(origin=origin)
    return method


def _require_method_class(kind: type[Any], name: str) -> None:
    """Refuse a class whose objects are no methods before one is made: to make one may do anything."""
    is_called = any("__call__" in vars(base) for base in kind.__mro__)
    is_estimator = hasattr(kind, "fit") and hasattr(kind, "predict")
    if not (issubclass(kind, Method) or is_called or is_estimator):
        raise InputError(
            f"method '{name}': expected a class with fit and predict, one whose objects are called, or a Method, found "
            f"the class {kind.__name__}"
        )


def _offered(module: ModuleType) -> list[str]:
    """The names of what a module itself defines that may be a method."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, Estimator))
        and getattr(value, "__module__", None) == module.__name__
    ]


def wrap(given: Any, where: str = "") -> Method:
    """An object of somebody's own as a method; InputError, beginning with `where`, if it is none."""
    from shotproof.learners.custom.sklearn_estimator import SklearnEstimator
    from shotproof.learners.custom.task_by_task import TaskByTask

    if isinstance(given, Method):
        return given
    if not isinstance(given, type):
        if isinstance(given, Estimator):
            return SklearnEstimator(given)
        if callable(given):
            return TaskByTask(given)
    kind = f"the class {given.__name__}" if isinstance(given, type) else f"an object of {type(given).__name__}"
    raise InputError(
        f"{where}expected a method's name, a Method, an object with fit and predict, or a function of support, labels "
        f"and query, found {kind}"
    )


def check_options(name: str, call: Callable[..., Any], options: Mapping[str, Any], data: int = 0) -> None:
    """Refuse options that a class or function does not have, or lacks.

    Args:
        name: what the user called it, for messages
        call: the class or function
        options: values by option
        data: how many of its first parameters are no options

    Raises:
        InputError: an option is unknown, with the nearest one, or missing.
    """
    try:
        parameters = list(inspect.signature(call).parameters.values())[data:]
    except (TypeError, ValueError):
        return  # of compiled code, which says nothing of its parameters
    known = {each.name: each for each in parameters if each.kind in _BY_NAME}
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    for key in options:
        if key not in known and not takes_any:
            raise InputError(f"method '{name}' has no option '{key}'{did_you_mean(key, known)}")
    missing = [key for key, each in known.items() if each.default is each.empty and key not in options]
    if missing:
        example = ", ".join(f"{key}=..." for key in missing)
        raise InputError(f"method '{name}' needs {', '.join(missing)}: e.g. {name}({example})")
