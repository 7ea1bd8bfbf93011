"""The demo's texts: docstrings of the standard library.

Every machine with Python has the docstrings, so the demo downloads no data. Groups of modules are tenants. The
questions are written by hand and name the object that answers each. Ten of the first sixty were reworded after a first
measurement (recall@5 30 of 42 then 33 over the small tenants, 23 of 60 then 27 over everything), so their recall is not
a blind figure. The second sixty were written before any measurement with them, and remain unchanged.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from types import ModuleType

from rag_audit._internal.errors import SetupError
from rag_audit.retrieval.texts import DocumentPart

log = logging.getLogger(__name__)

MIN_CHARS = 80
"""Minimum characters of a docstring: shorter ones repeat a signature and answer no question."""

# Modules of Linux and macOS from Python 3.11 to 3.14. Their import has no effect that a person would notice.
# `builtins.str` is one class of a module that several groups share.
SOURCES: Mapping[str, tuple[str, ...]] = {
    group: tuple(modules.split())
    for group, modules in {
        "text": """
            builtins.str string re textwrap unicodedata difflib shlex html html.parser html.entities
            codecs locale gettext pprint reprlib stringprep
        """,
        "numbers": """
            builtins.int builtins.float builtins.complex math cmath decimal fractions numbers random
            secrets statistics datetime calendar time zoneinfo colorsys
        """,
        "files": """
            pathlib os.path shutil glob fnmatch tempfile filecmp fileinput linecache stat io mmap
            zipfile tarfile gzip bz2 lzma zlib
        """,
        "collections": """
            builtins.list builtins.tuple builtins.dict builtins.set builtins.frozenset builtins.range
            collections collections.abc heapq bisect array queue graphlib weakref copy enum types
            dataclasses
        """,
        "functions": "builtins itertools functools operator contextlib contextvars typing abc",
        "formats": """
            builtins.bytes builtins.bytearray builtins.memoryview json csv configparser tomllib plistlib
            xml.etree.ElementTree xml.dom xml.dom.minidom xml.dom.pulldom xml.sax xml.sax.handler
            xml.sax.saxutils xml.sax.xmlreader sqlite3 dbm dbm.dumb shelve pickle pickletools copyreg
            marshal struct base64 binascii quopri hashlib hmac uuid netrc wave
        """,
        "network": """
            socket socketserver ssl select selectors http http.client http.server http.cookies
            http.cookiejar urllib.parse urllib.request urllib.error urllib.response urllib.robotparser
            ftplib imaplib poplib smtplib ipaddress xmlrpc.client xmlrpc.server wsgiref.util
            wsgiref.headers wsgiref.handlers wsgiref.simple_server wsgiref.validate mimetypes webbrowser
        """,
        "mail": """
            email email.message email.parser email.feedparser email.policy email.header
            email.headerregistry email.utils email.generator email.iterators email.charset
            email.encoders email.contentmanager email.errors email.base64mime email.quoprimime
            email.mime.application email.mime.audio email.mime.image email.mime.message
            email.mime.multipart email.mime.text mailbox
        """,
        "concurrency": """
            threading asyncio asyncio.sslproto asyncio.staggered concurrent.futures multiprocessing
            multiprocessing.connection multiprocessing.context multiprocessing.managers
            multiprocessing.pool multiprocessing.queues multiprocessing.reduction
            multiprocessing.shared_memory multiprocessing.sharedctypes multiprocessing.synchronize
            multiprocessing.util subprocess signal sched
        """,
        "system": """
            os sys platform errno resource fcntl pwd grp termios tty pty syslog getpass argparse
            optparse getopt logging logging.config logging.handlers curses curses.ascii curses.panel
            curses.textpad cmd code codeop ctypes ctypes.util gc atexit sysconfig site faulthandler
        """,
        "tools": """
            ast dis inspect symtable token tokenize keyword traceback tracemalloc trace warnings
            unittest unittest.mock doctest pdb bdb timeit cProfile profile pstats pydoc pyclbr
            py_compile compileall tabnanny importlib importlib.abc importlib.machinery
            importlib.metadata importlib.resources importlib.resources.abc importlib.util pkgutil
            modulefinder runpy zipapp zipimport venv ensurepip
        """,
    }.items()
}


@dataclass(frozen=True)
class Question:
    """A question as a person asks it, the group of the object that answers it, and that object's title."""

    question: str
    tenant: str
    answer: str


def collect(min_chars: int = MIN_CHARS) -> list[DocumentPart]:
    """Collect the docstrings of `SOURCES`, without duplicates, in an order that depends on the Python release only.

    If this platform lacks a module, the function skips it and logs a warning.

    :param min_chars: minimum length of a text, in characters
    :raises SetupError: Python was started with -OO, which removes docstrings
    """
    if sys.flags.optimize > 1:
        raise SetupError("this interpreter runs without docstrings", actual="python -OO", hint="drop -OO")
    documents: dict[str, DocumentPart] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for group, sources in SOURCES.items():
            for source in sources:
                try:
                    objects = list(_objects(source))
                except ImportError as exc:
                    log.warning("the demo's text lacks module %s: %s", source, exc)
                    continue
                for title, item in objects:
                    text = inspect.getdoc(item) or ""
                    if len(text) >= min_chars and text not in documents:
                        documents[text] = DocumentPart(f"{group}/{title}", group, title, text, source)
    return list(documents.values())


def passages() -> list[DocumentPart]:
    """The docstrings as the demo indexes them: each begins with the name of its object.

    Docstrings rarely name their object. With the name, `minilm-int` finds 43 of the first sixty questions' passages
    among five, and 37 without it. The second sixty questions had no part in this choice.
    """
    return [replace(part, text=f"{part.title}: {part.text}") for part in collect()]


def load_questions(*, blind: bool = False) -> list[Question]:
    """The questions that ship with the package.

    :param blind: the second set, which was written before anything was measured on it
    """
    name = "questions-blind.json" if blind else "questions.json"
    text = files("rag_audit.cli.demo").joinpath(name).read_text("utf-8")
    return [Question(**item) for item in json.loads(text)]


def _objects(source: str) -> Iterator[tuple[str, object]]:
    """The public objects of a module, or of one class of `builtins`, with their titles: functions, then classes with
    their members.
    """
    namespace, _, name = source.rpartition(".")
    if namespace == "builtins":
        yield from _class(name, getattr(importlib.import_module(namespace), name))
        return
    module = importlib.import_module(source)
    prefix = "" if source == "builtins" else f"{source}."
    if prefix:
        yield source, module
    result = [
        (name, item) for name, item in _exports(module) if inspect.isclass(item) or inspect.isroutine(item)
    ]
    # Aliases last, base classes before their subclasses: of equal docstrings the first one gives the title.
    result.sort(key=lambda pair: (pair[1].__name__ != pair[0], len(getattr(pair[1], "__mro__", ())), pair[0]))
    for name, item in result:
        if inspect.isclass(item) and prefix:
            yield from _class(prefix + name, item)
        else:
            yield prefix + name, item


def _exports(module: ModuleType) -> Iterator[tuple[str, object]]:
    declared = getattr(module, "__all__", None)
    for name in sorted(set(dir(module) if declared is None else declared)):
        if name.endswith("hook"):  # any program may replace a hook, and test runners do
            continue
        item = getattr(module, name, None)
        if declared is not None or (not name.startswith("_") and _is_home(module.__name__, item)):
            yield name, item


def _is_home(owner: str, item: object) -> bool:
    """Whether the item comes from the owner's package or from the private modules beneath it."""
    top = (getattr(item, "__module__", None) or owner).partition(".")[0]
    return top.startswith("_") or top == owner.partition(".")[0]


def _class(title: str, cls: type) -> Iterator[tuple[str, object]]:
    yield title, cls
    for name in sorted(n for n in dir(cls) if not n.startswith("_")):
        base = next((base for base in cls.__mro__ if name in vars(base)), None)
        if base is None or not _is_home(cls.__module__, base):
            continue
        member = vars(base)[name]
        if inspect.isroutine(member) or inspect.isdatadescriptor(member):
            yield f"{title}.{name}", member
