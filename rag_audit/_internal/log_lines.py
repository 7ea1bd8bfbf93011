"""Lines of a log: one line of JSON or text for each event, with time and level."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rag_audit._internal.printable import printable


@lru_cache(maxsize=4)
def _second(since: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))


def _members(record: logging.LogRecord) -> dict[str, Any]:
    """Time, level and event of a record, its `fields`, and the name of its exception."""
    value: dict[str, Any] = {
        "time": f"{_second(int(record.created))}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "event": record.getMessage(),
        **getattr(record, "fields", {}),
    }
    if record.exc_info is not None and record.exc_info[0] is not None:
        value["exception"] = record.exc_info[0].__name__  # its message may contain sent data
    return value


class JsonLines(logging.Formatter):
    """Log records as JSON objects. The entries of a record's `fields` become members next to its time, level and
    event."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return json.dumps(_members(record), ensure_ascii=True)


class TextLines(logging.Formatter):
    """Log records for people: time, level, event, and each other member as ``name=value``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, in which the content of an event or a field cannot begin another line."""
        members = _members(record)
        time_, level, event = members.pop("time"), members.pop("level"), members.pop("event")
        others = "".join(f" {name}={value}" for name, value in members.items())
        return printable(f"{time_} {level:7} {event}{others}")


FORMS: Mapping[str, type[logging.Formatter]] = {"text": TextLines, "json": JsonLines}
"""The formatters of log lines by the names of their forms."""


class _Quiet(logging.StreamHandler[Any]):
    """A handler whose unwritable output, for example on a full disk, ends no process and prints no error."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def log_lines(stream: Any = None, *, form: str = "json") -> logging.Handler:
    """Write the service's log, and its server's warnings, one line for each event.

    :param stream: where to; standard error if None
    :param form: a name in `FORMS`
    """
    handler = _Quiet(stream)
    handler.setFormatter(FORMS[form]())
    for name, level in (("rag_audit", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
    return handler


def remove_handler(handler: logging.Handler) -> None:
    """Undo `log_lines`."""
    for name in ("rag_audit", "uvicorn"):
        logger = logging.getLogger(name)
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True
