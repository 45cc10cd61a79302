"""Naive Bayes as MapReduce: Mahout's, which the paper ran out of HiBench, over documents of known classes."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from .jobs import Jobs

MAHOUT = "org.apache.mahout"
CLASSES = 4
WORDS = 400  # of each class, and as many that all have in common
WORDS_OF_DOCUMENT = 60
SYNC_EVERY_BYTES = 2000

_SUMMARY = re.compile(r"(Correctly|Incorrectly) Classified Instances\s*:\s*(\d+)")


def run(jobs: Jobs, size: int) -> list[str]:
    """Vectors of documents, a model of them, and the model's word on each document.

    Half of a document's words are its class's alone, so that the model must tell the class of all but a few.
    """
    file = jobs.scratch / f"documents-{size}"
    count = write_documents(file, size)
    jobs.shell("-mkdir", "-p", "/bayes/in")
    jobs.shell("-put", str(file), "/bayes/in")
    words = ["-i", "/bayes/in", "-o", "/bayes/vectors", "-lnorm", "-nv", "-wt", "tfidf", "-ow"]
    jobs.run("bayes-vectors", f"{MAHOUT}.vectorizer.SparseVectorsFromSequenceFiles", *words)
    model = ["-i", "/bayes/vectors/tfidf-vectors", "-o", "/bayes/model", "-li", "/bayes/labels", "-ow"]
    training = [*model, "--tempDir", "/bayes/training"]
    jobs.run("bayes", f"{MAHOUT}.classifier.naivebayes.training.TrainNaiveBayesJob", *training)
    words = ["-i", "/bayes/vectors/tfidf-vectors", "-m", "/bayes/model", "-l", "/bayes/labels", "-o", "/bayes/told"]
    log = jobs.run("bayes-test", f"{MAHOUT}.classifier.naivebayes.test.TestNaiveBayesDriver", *words, "-ow")
    jobs.shell("-rm", "-r", "-skipTrash", "/bayes")
    return doubts(log, count)


def doubts(log: str, count: int) -> list[str]:
    """What is wrong with what the classifier said of `count` documents."""
    told = {kind: int(number) for kind, number in _SUMMARY.findall(log)}
    right, wrong = told.get("Correctly", 0), told.get("Incorrectly", 0)
    if right + wrong != count:
        return [f"naive Bayes: {right + wrong} documents classified, not {count}"]
    if wrong > count // 20:
        return [f"naive Bayes: {wrong} of {count} documents taken for another class"]
    return []


def write_documents(path: Path, size: int) -> int:
    """Writes a SequenceFile of documents named /<class>/<number>, `size` bytes of words in all; returns how many."""
    rng, count = random.Random(size), 0

    def documents() -> Iterator[tuple[str, str]]:
        nonlocal count
        left = size
        while left > 0 or count < CLASSES:
            kind = count % CLASSES
            words = [
                f"{rng.choice((own(kind), 'w'))}{_letters(rng.randrange(WORDS))}" for _ in range(WORDS_OF_DOCUMENT)
            ]
            text = " ".join(words)
            yield f"/class{kind}/{count}", text
            left, count = left - len(text), count + 1

    write_sequence_file(path, documents(), rng.randbytes(16))
    return count


def own(kind: int) -> str:
    """What the words of a class begin with."""
    return f"class{'abcdefgh'[kind]}"


def _letters(number: int) -> str:
    """A number in letters; words with digits in them are no words to everyone."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}")


def write_sequence_file(path: Path, records: Iterator[tuple[str, str]], sync: bytes) -> None:
    """Hadoop's SequenceFile, version 6: keys and values of type Text, not compressed, no metadata.

    `sync` are the 16 bytes by which a reader that begins in the middle finds a record's beginning.
    """
    kind = text(b"org.apache.hadoop.io.Text")
    with path.open("wb") as out:
        out.write(b"SEQ\x06" + kind + kind + bytes([0, 0]) + struct.pack(">i", 0) + sync)
        synced = out.tell()
        for key, value in records:
            if out.tell() >= synced + SYNC_EVERY_BYTES:
                out.write(struct.pack(">i", -1) + sync)
                synced = out.tell()
            key_, value_ = text(key.encode()), text(value.encode())
            out.write(struct.pack(">ii", len(key_) + len(value_), len(key_)) + key_ + value_)


def text(content: bytes) -> bytes:
    """A Hadoop Text: its length as WritableUtils writes integers, then its bytes."""
    length = len(content)
    if length <= 127:
        return bytes([length]) + content
    size = -(-length.bit_length() // 8)
    return bytes([0x100 - 112 - size]) + length.to_bytes(size, "big") + content
