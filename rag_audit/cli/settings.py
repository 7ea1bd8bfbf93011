"""The provider's stored settings of a window header, for reopening it."""

from __future__ import annotations

from pathlib import Path

from rag_audit._internal.canonical import Json, jcs, read_json
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import SetupError
from rag_audit.attest.window import Window
from rag_audit.cli.common import patiently, signing_key
from rag_audit.models.layout import Layout
from rag_audit.models.models import Model


class Settings(Model):
    """settings.json: the settings that the commands use to reopen a window."""

    key: str
    """path of the file with the provider's key"""
    model: str | None = None
    """path of the folder with the embedder's files, if it has any"""

    @property
    def model_folder(self) -> Path | None:
        """`model` as a path."""
        return None if self.model is None else Path(self.model)


def settings_of(directory: Path) -> Settings:
    path = Layout(directory).settings
    if not path.exists() and Layout(directory).commitment.exists():
        raise SetupError("the window was opened by a program: the command does not know the provider's key",
                         field=str(path), hint=f"rag-audit provider open {directory} --key FILE, once")  # fmt: skip
    if not path.exists():
        raise SetupError(
            "there is no window in this folder",
            field=str(directory),
            expected="the provider's own folder of a window, such as run/windows/w-1",
            hint="open a window with `rag-audit provider open`, or let `rag-audit run` open its windows",
        )
    return Settings.parse(read_json(path, max_bytes=1 << 16), field=str(path))


def stored_model(directory: Path) -> Path | None:
    """The folder of the embedder's files, if the command knows one."""
    return settings_of(directory).model_folder if Layout(directory).settings.exists() else None


def store_settings(directory: Path, key: Path, model: Path | None) -> Path:
    """Store the paths that commands need in a window's folder, before the window is opened or after a program opened
    it, and return the folder.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings: dict[str, Json] = {"key": str(key.resolve())}
    if model is not None:
        settings["model"] = str(model.resolve())
    replace_file(Layout(directory).settings, jcs(settings))
    return directory


def resume(directory: Path, *, low_memory: bool = False, noise_mib: int | None = None) -> Window:
    """Resume the window in a folder with the key that it was opened with.

    :param noise_mib: MiB that precomputed noise may take, if it is given
    """
    settings = settings_of(directory)
    with patiently("reading the window back"):
        key = signing_key(Path(settings.key))
        window = Window.resume(directory, key=key, model=settings.model_folder)
    window.low_memory = low_memory
    if noise_mib is not None:
        window.noise_pool.max_bytes = noise_mib << 20
    return window
