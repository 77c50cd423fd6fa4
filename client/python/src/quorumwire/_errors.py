"""One class for each error of libquorumwire. Their numbers are those of quorumwire.h."""

from __future__ import annotations

from typing import ClassVar

from ._native import ffi, lib


class Error(Exception):
    """What all errors of this library are. Its text says what is known: a limit, or who is to blame."""

    code: ClassVar[int]


class ArgumentError(Error, ValueError):
    """An argument makes no sense."""

    code = lib.QUORUMWIRE_ERROR_ARGUMENT


class HandleError(Error):
    """The client is closed, or was opened by another process; or another call has taken the place of this one."""

    code = lib.QUORUMWIRE_ERROR_HANDLE


class ConfigurationError(Error):
    """The configuration file cannot be read, or says something that makes no sense."""

    code = lib.QUORUMWIRE_ERROR_CONFIGURATION


class TooLargeError(Error, ValueError):
    """The value is longer than `value_bytes_max`."""

    code = lib.QUORUMWIRE_ERROR_TOO_LARGE


class NotCarriedOutError(Error):
    """It was not carried out, and will not be: mostly, nobody led until the deadline."""

    code = lib.QUORUMWIRE_ERROR_NOT_CARRIED_OUT


class OutcomeUnknownError(Error):
    """Nobody knows whether it was carried out, or may yet be, though not twice."""

    code = lib.QUORUMWIRE_ERROR_OUTCOME_UNKNOWN


class AnswerGoneError(Error):
    """It was carried out; the answer is lost."""

    code = lib.QUORUMWIRE_ERROR_ANSWER_GONE


class FullError(Error):
    """As many bytes of values are kept as may be. The text names the learner that is furthest behind."""

    code = lib.QUORUMWIRE_ERROR_FULL


class TrimmedError(Error):
    """Some of what was asked for is trimmed. The text says up to which instance."""

    code = lib.QUORUMWIRE_ERROR_TRIMMED


class NoLearnerError(Error):
    """There is no learner of this number."""

    code = lib.QUORUMWIRE_ERROR_NO_LEARNER


class NotDecidedError(Error):
    """The instance is beyond the last that is decided."""

    code = lib.QUORUMWIRE_ERROR_NOT_DECIDED


class NotLetInError(Error):
    """Not this name with this password."""

    code = lib.QUORUMWIRE_ERROR_NOT_LET_IN


class BusyError(Error):
    """Too much waits already."""

    code = lib.QUORUMWIRE_ERROR_BUSY


class InternalError(Error):
    """A fault of the library, or of the system: no thread, no descriptor."""

    code = lib.QUORUMWIRE_ERROR_INTERNAL


def all_errors() -> list[type[Error]]:
    """The class of each error of the library."""
    return Error.__subclasses__()


_BY_CODE = {error.code: error for error in all_errors()}


def error(code: int, text: str) -> Error:
    """The error with this number. One of a library that is newer than this is one of the library's."""
    return _BY_CODE.get(code, InternalError)(text)


def text_of(code: int) -> str:
    """What an error means, in a few words."""
    return str(ffi.string(lib.quorumwire_error_text(code)).decode())


def check(code: int) -> int:
    """What a function of the library has returned to this thread, unless that is an error."""
    if code >= 0:
        return code
    size = lib.quorumwire_last_error(ffi.NULL, ffi.NULL, 0)
    buffer = ffi.new("char[]", size + 1)
    lib.quorumwire_last_error(ffi.NULL, buffer, size + 1)
    raise error(code, ffi.string(buffer).decode(errors="replace"))
