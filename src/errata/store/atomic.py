"""Outputs that appear whole or not at all: a file or a folder gets its name only when it is complete."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core import InputError
from ..core.paths import check_encodable

try:
    import fcntl
except ImportError:  # Windows: leftovers are told by their age alone
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial-"
LOCK = ".lock"
ABANDONED = 3600  # seconds: network file systems may not share locks, so a free one alone is no proof of a death
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # of a file system without them


def check_output(path: str | Path) -> Path:
    """The file or folder to write: it must not exist, and its parent must be writable or creatable."""
    path = Path(path)
    target = _real(path)
    check_encodable(target)
    try:
        if target.exists() or target.is_symlink():
            raise _exists(path)
        parent = next(p for p in target.parents if p.exists())
    except OSError as error:
        raise InputError(f"`{path}` cannot be written ({error.strerror}); name another output") from error
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"`{path}` cannot be written: `{parent}` is not a folder one may write to; name another")
    return path


def check_parquet_output(path: str | Path) -> Path:
    """A new `.parquet` file to write."""
    path = Path(path)
    if path.suffix != ".parquet":
        raise InputError(f"`{path}` must end in .parquet; got `{path.suffix or 'nothing'}`; rename the output")
    return check_output(path)


def check_replaceable(path: str | Path) -> Path:
    """A file to write, or to write anew: a report of a build is made again and again."""
    path = Path(path)
    if os.path.isdir(path):  # which a name that is too long is not, where pathlib would raise
        raise InputError(f"`{path}` is a folder; name a file")
    if os.path.isfile(path) and os.access(path.absolute().parent, os.W_OK):
        return path
    return check_output(path)


@contextmanager
def atomic_file(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Write a file whole or not at all: yields another path, which gets its name at the end, when it is on disk.

    On any error neither is left, nor new parent folders. What has appeared under the name meanwhile is an error, unless
    it is to be replaced.
    """
    target = _real(path)
    new_parents = [parent for parent in target.parents if not parent.exists()]
    try:
        with _workplace(target) as work:
            partial = work / target.name
            yield partial
            _flush(partial)
            _publish(partial, target, replace)
        for parent in (target.parent, *(new.parent for new in new_parents)):
            _sync(parent)
    except BaseException as error:
        for parent in new_parents:
            with suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        if isinstance(error, FileExistsError):
            raise _exists(path) from error
        if not isinstance(error, OSError):
            raise
        raise InputError(f"`{path}` cannot be written ({error.strerror or error}); name another output") from error


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Write a folder whole or not at all: yields an empty one, which gets its name at the end."""
    with atomic_file(folder) as partial:
        partial.mkdir()
        yield partial


def _real(path: Path) -> Path:
    """The absolute path without `..`, whose detour through a folder that does not exist would create that one."""
    if path.name == "..":
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


def _exists(path: Path) -> InputError:
    return InputError(f"`{path}` exists already; name another output, or remove it first")


@contextmanager
def _workplace(target: Path) -> Iterator[Path]:
    """A folder beside the target that no other writer has, in this process or on any machine; locked while we live."""
    _remove_abandoned(target)
    work = target.with_name(f".{target.name}{PARTIAL}{secrets.token_hex(8)}")
    work.mkdir(parents=True)
    lock = os.open(work / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        _take(lock)
        yield work
    finally:
        _remove(work)
        os.close(lock)


def _take(lock: int) -> bool:
    """Lock an open file unless another writer has; whether that is done, or there are no locks here."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Wait until no other process changes a saved folder, and keep others waiting meanwhile."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"`{folder}` cannot be opened ({error.strerror}); give the folder of an audit") from error
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)  # which ends the lock, as the end of the process does


def _remove_abandoned(target: Path) -> None:
    """What dead writers left of this same output: nobody holds its lock, and it is old."""
    for left in target.parent.glob(f".{glob.escape(target.name)}{PARTIAL}*"):
        with suppress(OSError):  # another writer removes it too
            if time.time() - _last_change(left) > ABANDONED and not _locked(left):
                _remove(left)


def _last_change(path: Path) -> float:
    return max(part.lstat().st_mtime for part in (path, *path.rglob("*")))


def _locked(work: Path) -> bool:
    try:
        lock = os.open(work / LOCK, os.O_RDWR)
    except OSError:  # versions up to 0.4 had none
        return False
    try:
        return not _take(lock)
    finally:
        os.close(lock)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _publish(partial: Path, target: Path, replace: bool) -> None:
    """Give the partial file or folder its name, in one step; a FileExistsError where somebody else was faster."""
    if replace:
        os.replace(partial, target)
    elif partial.is_dir():
        try:
            os.rename(partial, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
                raise FileExistsError(error.errno, "exists already") from error
            raise
    else:
        _link(partial, target)


def _link(partial: Path, target: Path) -> None:
    """A second name for the file: unlike a rename, it never takes the place of another."""
    try:
        os.link(partial, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "exists already") from error
        os.rename(partial, target)


def _flush(partial: Path) -> None:
    """On disk before its name is: a machine that stops in between must not leave empty files."""
    for path in (*partial.rglob("*"), partial):
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems sync no folders
            raise
    finally:
        os.close(handle)
