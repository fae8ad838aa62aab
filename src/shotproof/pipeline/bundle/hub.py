"""Bundles on the Hugging Face Hub: one file of a data set's repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, MissingExtra, first_line
from shotproof.pipeline.bundle.bundle import Bundle

HUB = "hub:"
_KIND = "dataset"


def upload_bundle(file: str | Path, repository: str) -> str:
    """Put a bundle into a data set of the hub, which is made where it is not there; it is verified first.

    Args:
        file: the bundle
        repository: `me/birds`; the account is that of `hf auth login` or `HF_TOKEN`

    Returns:
        What `shotproof run` and `download_bundle` take: `hub:me/birds/birds.zip`.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        InputError: it is no bundle, or the hub refuses it.
    """
    Bundle.read(file)
    hub = _hub()
    name = Path(file).name
    try:
        api = hub.HfApi()
        api.create_repo(repository, repo_type=_KIND, exist_ok=True)
        api.upload_file(path_or_fileobj=str(file), path_in_repo=name, repo_id=repository, repo_type=_KIND)
    except _refusals() as error:
        raise InputError(f"{HUB}{repository}: the hub refuses {name}: {first_line(error)}") from error
    return f"{HUB}{repository}/{name}"


def download_bundle(address: str) -> Path:
    """A bundle of the hub as a file of the local cache, downloaded where it is not there.

    Args:
        address: `hub:USER/DATASET/FILE.zip`, of a revision `hub:USER/DATASET/FILE.zip@REVISION`

    Raises:
        MissingExtra: huggingface_hub is not installed.
        InputError: the address is none, or there is no such file.
    """
    path, _, revision = address.removeprefix(HUB).partition("@")
    user, _, rest = path.partition("/")
    repository, _, name = rest.partition("/")
    if not (address.startswith(HUB) and user and repository and name.endswith(".zip")):
        raise InputError(f"expected {HUB}USER/DATASET/FILE.zip, found '{address}'")
    hub = _hub()
    try:
        found: str = hub.hf_hub_download(f"{user}/{repository}", name, repo_type=_KIND, revision=revision or None)
    except _refusals() as error:
        raise InputError(f"{address} cannot be downloaded: {first_line(error)}") from error
    return Path(found)


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtra("the Hugging Face Hub", "hub") from error
    return huggingface_hub


def _refusals() -> tuple[type[Exception], ...]:
    from huggingface_hub.errors import HfHubHTTPError

    return (HfHubHTTPError, OSError, ValueError)
