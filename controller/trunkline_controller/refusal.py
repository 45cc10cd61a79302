"""A setting that is refused, and the check of a file with a secret, or a bearer token, that a setting names."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

MAX_SECRET_BYTES = 4096
MIN_TOKEN_BYTES = 16


class SettingsError(ValueError):
    """A setting that is refused: which, what is wrong with it, the way out."""

    def __init__(self, setting: str, what: str, remedy: str) -> None:
        super().__init__(f"{setting}: {what}; {remedy}")
        self.setting = setting
        self.what = what
        self.remedy = remedy


def secret(setting: str, path: Path) -> bytes:
    """A small file that nobody else can read. Raises SettingsError."""
    try:
        # A named pipe that nobody writes to keeps nobody waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise SettingsError(setting, f"{path} is not a file", "name a regular file")
            if mode & 0o077:
                what = f"{path} can be read by other users (mode {stat.S_IMODE(mode):04o})"
                raise SettingsError(setting, what, f"chmod 600 {path}")
            return os.read(descriptor, MAX_SECRET_BYTES)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SettingsError(setting, f"{path}: {error.strerror}", "name a file that this program can read") from None


def token(setting: str, path: Path) -> bytes:
    """The bearer token in a file. Raises SettingsError unless the file keeps it secret."""
    text = secret(setting, path).strip()
    if len(text) < MIN_TOKEN_BYTES:
        raise SettingsError(
            setting,
            f"{path} has a token of {len(text)} bytes",
            f"{MIN_TOKEN_BYTES} are the least: openssl rand -hex 32 > {path}",
        )
    if not re.fullmatch(rb"[A-Za-z0-9._~+/-]+=*", text):
        raise SettingsError(
            setting,
            f"{path} has a token that a header can't carry",
            "use letters, digits and -._~+/ as openssl rand -hex 32 makes them",
        )
    return text
