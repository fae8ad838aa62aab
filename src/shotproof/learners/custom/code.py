"""Custom code by its location: `my_heads.py:Head(epochs=10)` in a file, `python:my_package.heads:head` in a module."""

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
TASK_PARAMETERS = 3  # support, labels and query, which come before the options of a function

# Without the prefix, the path of a file has no parentheses or quotes, because options have them.
_FILE = re.compile(r"""[^("']+\.py(:|\(|$)""")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_loaded_files: dict[Path, tuple[str, ModuleType]] = {}  # by file: digest of the source, and the module


def is_in_file(spelling: str) -> bool:
    """Return whether the spelling of a method names a file, without the prefix."""
    return not spelling.startswith(PREFIX) and bool(_FILE.match(spelling))


def load(location: str, options: Mapping[str, Any], folder: Path | None = None, spelling: str = "") -> Method:
    """Load a method from a file or module.

    Args:
        location: `my_heads.py:Head`, `my_package.heads:Head`; a class is called with the options, a function gets them
            by name after support, labels and query, and an object is used as it is
        options: values by option
        folder: folder that the path of a file is relative to, the working folder if None
        spelling: the whole text that names the method, which the user may have typed

    Returns:
        The method, with the name and spelling that were typed.

    Raises:
        NotTrusted: the user has neither typed the spelling nor agreed to exactly this code; nothing was imported.
        InputError: the file, module, name or option does not exist, the code fails, or it is not a method.
    """
    source, _, attribute = location.rpartition(":")
    if not attribute.isidentifier() or not (source.endswith(".py") or _MODULE.fullmatch(source)):
        raise InputError(f"method '{location}': {EXPECTED}")
    code: bytes | None
    if source.endswith(".py"):
        file = Path(folder or "", Path(source).expanduser()).resolve()
        name, source_description = f"{Path(source).as_posix()}:{attribute}", str(file)
        code = _read_source(file, name)
        origin = CodeOrigin(name, options, source_description, _digest(code))
        require_recorded_code(_digest(code), f"method '{name}'")
    else:
        origin, source_description = CodeOrigin(f"{PREFIX}{source}:{attribute}", options), f"the module {source}"
        code = _module_source(source)
    # The text includes digest and options, so consent is to exactly this code with these options.
    code_status = "not found" if code is None else f"digest {_digest(code)}"
    require_trust(
        f"method '{origin.spelling}' runs the code of {source_description} ({code_status})", spelling or origin.spelling
    )
    return load_again(origin)


def load_again(origin: CodeOrigin) -> Method:
    """Load the method of an origin in this process, from its file as it is now.

    Random numbers drawn during construction, such as the initial weights of a network, are the same in every process.
    """
    source, _, attribute = origin.name.removeprefix(PREFIX).rpartition(":")
    with shared_generators() as generators:
        generators.seed(0)
        module = _import_module(source, origin.name) if origin.file is None else _load_file(Path(origin.file), origin)
        generators.seed(0)  # the same state whether the module was imported just now or earlier
        return _build_method(module, attribute, origin)


def _import_module(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        hint = "; is it installed, or its folder in PYTHONPATH?" if isinstance(error, ImportError) else ""
        raise InputError(f"method '{name}': cannot import module '{module}' ({reason}){hint}") from error


def _load_file(file: Path, origin: CodeOrigin) -> ModuleType:
    """Run the code of a file unless that was done before. Raise Mismatch if it is not the code of the origin."""
    source = _read_source(file, origin.name)
    digest = _digest(source)
    if digest != origin.digest:
        raise Mismatch(f"method '{origin.name}': '{file}' has changed since it was first read: start again")
    loaded_digest, module = _loaded_files.get(file, (None, None))
    if module is None or loaded_digest != digest:
        module = _run_file(file, source, origin.name)
        _loaded_files[file] = digest, module
    return module


def _read_source(file: Path, name: str) -> bytes:
    if not file.is_file():
        suggestion = did_you_mean(file.name, [neighbor.name for neighbor in file.parent.glob("*.py")])
        raise InputError(f"method '{name}': there is no file '{file}'{suggestion}")
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
    for depth in range(1, module.count(".") + 2):
        spec = PathFinder.find_spec(".".join(module.split(".")[:depth]), search)
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


def _run_file(file: Path, source: bytes, name: str) -> ModuleType:
    """Run the code of a file as a new module, which may import from the file's folder."""
    module = ModuleType(f"own_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses look up the module of a class there
    sys.path.insert(0, str(file.parent))
    try:
        exec(compile(source, str(file), "exec"), vars(module))
    except Exception as error:
        del sys.modules[module.__name__]
        raise InputError(f"method '{name}': '{file}' failed: {type(error).__name__}: {first_line(error)}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _build_method(module: ModuleType, attribute: str, origin: CodeOrigin) -> Method:
    """Build a method from the attribute of a module."""
    if not hasattr(module, attribute):
        suggestion = did_you_mean(attribute, _candidate_names(module))
        location = Path(origin.file).name if origin.file else f"module '{module.__name__}'"
        raise InputError(f"method '{origin.name}': {location} has no '{attribute}'{suggestion}")
    value = getattr(module, attribute)
    if isinstance(value, type):
        check_options(origin.name, value, origin.options)
        _require_method_class(value, origin.name)
        try:
            value = value(**origin.options)
        except ShotproofError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise InputError(f"method '{origin.spelling}' cannot be built: {reason}") from error
    elif isinstance(value, FunctionType):
        check_options(origin.name, value, origin.options, data_parameters=TASK_PARAMETERS)
        if origin.options:
            value = functools.update_wrapper(functools.partial(value, **origin.options), value)
    elif origin.options:
        raise InputError(f"method '{origin.name}' takes no options: it is an object, already built")
    method = wrap(value, f"method '{origin.name}': ")
    method._settle(origin=origin)
    return method


def _require_method_class(kind: type[Any], name: str) -> None:
    """Raise InputError if objects of a class are not methods, before building one, which could do anything."""
    is_called = any("__call__" in vars(base) for base in kind.__mro__)
    is_estimator = hasattr(kind, "fit") and hasattr(kind, "predict")
    if not (issubclass(kind, Method) or is_called or is_estimator):
        raise InputError(
            f"method '{name}': expected a class with fit and predict, a callable class, or a Method, found "
            f"the class {kind.__name__}"
        )


def _candidate_names(module: ModuleType) -> list[str]:
    """Return the names of the objects that a module itself defines and that may be methods."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, Estimator))
        and getattr(value, "__module__", None) == module.__name__
    ]


def wrap(value: Any, message_prefix: str = "") -> Method:
    """Wrap a custom object as a method. Raise InputError, beginning with `message_prefix`, if that is impossible."""
    from shotproof.learners.custom.sklearn_estimator import SklearnEstimator
    from shotproof.learners.custom.task_by_task import TaskByTask

    if isinstance(value, Method):
        return value
    if not isinstance(value, type):
        if isinstance(value, Estimator):
            return SklearnEstimator(value)
        if callable(value):
            return TaskByTask(value)
    kind = f"the class {value.__name__}" if isinstance(value, type) else f"an object of {type(value).__name__}"
    raise InputError(
        f"{message_prefix}expected a method's name, a Method, an object with fit and predict, or a function of "
        f"support, labels and query, found {kind}"
    )


def check_options(name: str, call: Callable[..., Any], options: Mapping[str, Any], data_parameters: int = 0) -> None:
    """Check options against the parameters of a class or function.

    Args:
        name: name of the method in messages, as the user spelled it
        call: the class or function
        options: values by option
        data_parameters: number of leading parameters that are not options

    Raises:
        InputError: an option is unknown, with the closest name, or missing.
    """
    try:
        parameters = list(inspect.signature(call).parameters.values())[data_parameters:]
    except (TypeError, ValueError):
        return  # compiled code has no signature
    parameters_by_name = {parameter.name: parameter for parameter in parameters if parameter.kind in _BY_NAME}
    accepts_any_option = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    for key in options:
        if key not in parameters_by_name and not accepts_any_option:
            raise InputError(f"method '{name}' has no option '{key}'{did_you_mean(key, parameters_by_name)}")
    missing = [
        key
        for key, parameter in parameters_by_name.items()
        if parameter.default is parameter.empty and key not in options
    ]
    if missing:
        example = ", ".join(f"{key}=..." for key in missing)
        raise InputError(f"method '{name}' needs {', '.join(missing)}: e.g. {name}({example})")
