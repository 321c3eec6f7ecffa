"""The file of a backup: a gzipped tar with a manifest, the database and the secret key. It may be
encrypted; otherwise ``tar xzf`` unpacks it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from app.errors import WakefulError
from app.i18n import N_, _
from app.paths import new_private_file
from app.stores.keeping import sealed

FORMAT = 1
MANIFEST, KEY = "manifest.json", "secret_key"
DATABASES = {"sqlite": "database.sqlite", "postgresql": "database.dump"}
PIECE = 1024 * 1024
MAX_NOTE = 64 * 1024  # of the manifest and of the key
PRIVATE = 0o600
OTHER_FORMAT = N_(
    "This backup was made by Wakeful %(version)s, whose format this version does not know. Install"
    " that version or a newer one."
)
DAMAGED = N_("The backup is damaged or incomplete.")
NOT_OURS = N_("This file is not a backup of Wakeful.")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a backup. ``database``: a key of DATABASES. ``revision``: the
    number of its last migration. ``made_at``: the time in UTC, as ISO 8601. ``with_key``: whether
    the backup has the secret key. ``sha256``: the hash of the database's file, in hex. ``wakeful``:
    the version that made it.
    """

    database: str
    revision: str
    made_at: str
    with_key: bool
    sha256: str
    wakeful: str
    format: int = FORMAT


def write(file: BinaryIO, manifest: Manifest, database: Path, key: str, passphrase: str) -> None:
    """Write the backup to ``file``. ``passphrase``: empty for a backup that is not encrypted."""
    stream = cast(BinaryIO, sealed.Sealer(file, passphrase)) if passphrase else file
    with (
        gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6) as packed,
        tarfile.open(fileobj=cast(IO[bytes], packed), mode="w|") as tar,
    ):
        _add(tar, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
        if manifest.with_key:
            _add(tar, KEY, key.encode())
        with database.open("rb") as content:
            _add_file(tar, DATABASES[manifest.database], content, database.stat().st_size)
    if passphrase:
        stream.close()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    _add_file(tar, name, io.BytesIO(content), len(content))


def _add_file(tar: tarfile.TarFile, name: str, content: BinaryIO, size: int) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode, about.mtime = size, PRIVATE, int(time.time())
    tar.addfile(about, content)


def is_encrypted(file: BinaryIO) -> bool:
    """Whether a passphrase is needed. Reads the start of ``file``, and goes back to it."""
    encrypted = file.read(len(sealed.MAGIC)) == sealed.MAGIC
    file.seek(0)
    return encrypted


def unpack(file: BinaryIO, folder: Path, passphrase: str) -> tuple[Manifest, Path, str]:
    """Unpack the backup into ``folder``. Returns its manifest, the path of the database's file, and
    the key, which is empty if the backup has none.

    Raises WakefulError for a file that is damaged, incomplete, of another format, or no backup.
    """
    with _reading():
        stream: Any = file
        if passphrase:
            file.seek(len(sealed.MAGIC))
            stream = io.BufferedReader(sealed.Opener(file, passphrase))
        with gzip.GzipFile(fileobj=stream, mode="rb") as plain:
            contents = _members(plain, folder)
            plain.read()  # notices a file that was cut after the last member
        return contents


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, tarfile.TarError, json.JSONDecodeError, UnicodeError):
        raise WakefulError(_(NOT_OURS)) from None
    except (EOFError, zlib.error):
        raise WakefulError(_(DAMAGED)) from None


def _members(plain: gzip.GzipFile, folder: Path) -> tuple[Manifest, Path, str]:
    manifest, key = None, ""
    with tarfile.open(fileobj=cast(IO[bytes], plain), mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is None:
                break
            if manifest is None:
                manifest = _manifest(member, content.read(MAX_NOTE))
            elif member.name == KEY:
                key = content.read(MAX_NOTE).decode().strip()
            elif member.name == DATABASES[manifest.database]:
                path = folder / member.name
                if _copy_content(cast(BinaryIO, content), path) != manifest.sha256:
                    break
                return manifest, path, key
    raise WakefulError(_(DAMAGED if manifest else NOT_OURS))


def _manifest(member: tarfile.TarInfo, raw: bytes) -> Manifest:
    fields = json.loads(raw) if member.name == MANIFEST else None
    if not isinstance(fields, dict) or fields.get("database") not in DATABASES:
        raise WakefulError(_(NOT_OURS))
    if fields.get("format") != FORMAT:
        raise WakefulError(_(OTHER_FORMAT, version=fields.get("wakeful")))
    try:
        return Manifest(**fields)
    except TypeError:
        raise WakefulError(_(NOT_OURS)) from None


def _copy_content(content: BinaryIO, path: Path) -> str:
    """Write the content to a new file that only its owner can read. Return its SHA-256."""
    digest = hashlib.sha256()
    with new_private_file(path) as file:
        while piece := content.read(PIECE):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
