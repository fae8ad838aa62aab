"""Bundles on the Hugging Face Hub, stored as a file in a dataset repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, MissingExtra, first_line
from shotproof.pipeline.bundle.bundle import Bundle

HUB = "hub:"
_REPOSITORY_TYPE = "dataset"


def upload_bundle(file: str | Path, repository: str) -> str:
    """Verify a bundle and upload it to a dataset of the hub, which is created if it does not exist.

    Args:
        file: bundle
        repository: `me/birds`; the account is that of `hf auth login` or `HF_TOKEN`

    Returns:
        The address for `shotproof run` and `download_bundle`: `hub:me/birds/birds.zip`.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        InputError: the file is not a bundle, or the hub rejects it.
    """
    Bundle.read(file)
    hub = _import_hub()
    name = Path(file).name
    try:
        api = hub.HfApi()
        api.create_repo(repository, repo_type=_REPOSITORY_TYPE, exist_ok=True)
        api.upload_file(path_or_fileobj=str(file), path_in_repo=name, repo_id=repository, repo_type=_REPOSITORY_TYPE)
    except _hub_errors() as error:
        raise InputError(f"{HUB}{repository}: the hub rejected {name}: {first_line(error)}") from error
    return f"{HUB}{repository}/{name}"


def download_bundle(address: str) -> Path:
    """Return the local file of a bundle on the hub, downloaded unless it is in the cache.

    Args:
        address: `hub:USER/DATASET/FILE.zip`, or with a revision `hub:USER/DATASET/FILE.zip@REVISION`

    Raises:
        MissingExtra: huggingface_hub is not installed.
        InputError: the address is invalid, or the file does not exist.
    """
    path, _, revision = address.removeprefix(HUB).partition("@")
    user, _, remainder = path.partition("/")
    repository, _, name = remainder.partition("/")
    if not (address.startswith(HUB) and user and repository and name.endswith(".zip")):
        raise InputError(f"expected {HUB}USER/DATASET/FILE.zip, found '{address}'")
    hub = _import_hub()
    try:
        downloaded: str = hub.hf_hub_download(
            f"{user}/{repository}", name, repo_type=_REPOSITORY_TYPE, revision=revision or None
        )
    except _hub_errors() as error:
        raise InputError(f"{address} cannot be downloaded: {first_line(error)}") from error
    return Path(downloaded)


def _import_hub() -> Any:
    """Import huggingface_hub."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtra("the Hugging Face Hub", "hub") from error
    return huggingface_hub


def _hub_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that the hub raises for invalid requests."""
    from huggingface_hub.errors import HfHubHTTPError

    return (HfHubHTTPError, OSError, ValueError)
