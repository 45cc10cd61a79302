"""HDFS behind a repository: files of a real cluster by name, verified by the repository's key.

The tests share a cluster and a repository and run in this order: the last one takes the cluster to pieces.
"""

import json
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import MIB, Bed, SlowWriter

from trunkline_lab import paths
from trunkline_lab.procs import Process, wait_until

pytestmark = pytest.mark.e2e

READER = "reader"  # as whom the repository asks


@dataclass
class Published:
    """What `/published` of the cluster is under `/cluster`, to a reader."""

    bed: Bed
    process: Process
    face: str
    key: Path
    directory: Path

    def trunkline(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(paths.built(paths.TRUNKLINE)), *arguments, "--face", self.face, "--verify", str(self.key)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def get(self, name: str, *how: str) -> subprocess.CompletedProcess[str]:
        (self.directory / "copy").unlink(missing_ok=True)
        return self.trunkline("repo", "get", name, "-o", str(self.directory / "copy"), "--json", *how)

    def read(self, name: str, *how: str) -> tuple[bytes, str]:
        """Bytes and versioned name of a file, as `repo get --verify` has it."""
        done = self.get(name, *how)
        assert done.returncode == 0, done.stderr + self.log()
        return (self.directory / "copy").read_bytes(), json.loads(done.stdout)["name"]

    def refused(self, name: str) -> str:
        """What a `repo get` says that must not succeed."""
        done = self.get(name)
        assert done.returncode == 4, done
        assert not (self.directory / "copy").exists()
        return done.stderr

    def log(self) -> str:
        return self.process.log.read_text(errors="replace")

    def put(self, source: Path, target: str, *options: str) -> None:
        self.bed.cluster.put(source, target, *options, properties={"dfs.blocksize": str(4 * MIB)})

    def webhdfs(self, method: str, path: str, operation: str) -> None:
        """Has the NameNode do something to a file, as its owner."""
        owner = Path("/proc/self").owner()
        url = f"http://{self.bed.cluster.http}/webhdfs/v1{path}?op={operation}&user.name={owner}"
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10) as answer:
            assert answer.status == 200


@pytest.fixture(scope="module")
def published(shared_bed, data, tmp_path_factory):
    directory = tmp_path_factory.mktemp("published")
    tree = directory / "published"
    (tree / "folder").mkdir(parents=True)
    (tree / "large").write_bytes(data[: 9 * MIB + 77])
    (tree / "a b%ü.txt").write_bytes(b"a name that is escaped")
    (tree / "empty").touch()
    (tree / "folder" / "x").write_bytes(data[:64512])
    config = directory / "repo.toml"
    face = f"unix://{shared_bed.router.control}"
    config.write_text(
        f'[repo]\ndirectory = "store"\nface = "{face}"\n[[serve]]\nprefix = "/cluster"\n'
        f'[store]\nweb = "{shared_bed.cluster.http}"\nuser = "{READER}"\n'
    )
    url = f"hdfs://{shared_bed.cluster.rpc}/published"
    command = [str(paths.built(paths.TRUNKLINE)), "repo", "run", "--config", str(config), "--store", url]
    process = shared_bed.stage.start("repo", shared_bed.router.host, command)
    published = Published(shared_bed, process, face, directory / "store" / "owner.key.pub", directory)
    published.put(tree, "/")
    wait_until("the repository", lambda: "serving /cluster" in published.log(), 20, process)
    return published


def test_files_and_folders_by_name(published, data):
    assert published.read("/cluster/large")[0] == data[: 9 * MIB + 77]
    assert published.read("/cluster/a%20b%25%C3%BC.txt")[0] == b"a name that is escaped"
    assert published.read("/cluster/empty")[0] == b""
    assert published.read("/cluster/folder/x")[0] == data[:64512]
    rows = json.loads(published.trunkline("repo", "ls", "/cluster", "--by-name", "--json").stdout)
    assert rows == [
        {"name": "/cluster/a%20b%25%C3%BC.txt"},
        {"name": "/cluster/empty"},
        {"folder": "/cluster/folder"},
        {"name": "/cluster/large"},
    ]
    shown = published.trunkline("repo", "ls", "/cluster/folder", "--by-name")
    assert "/cluster/folder/x" in shown.stdout
    for nothing in ("/cluster/folder", "/cluster/no", "/cluster/folder/x/y"):
        published.refused(nothing)
    assert published.trunkline("repo", "ls", "/cluster/no", "--by-name").returncode == 4


def test_only_what_the_user_may_read_is_published(published):
    published.webhdfs("PUT", "/published/folder/x", "SETPERMISSION&permission=600")
    wait_until("it is refused", lambda: published.get("/cluster/folder/x").returncode == 4, 10)
    published.webhdfs("PUT", "/published/folder/x", "SETPERMISSION&permission=644")
    wait_until("it is back", lambda: published.get("/cluster/folder/x").returncode == 0, 10)


def test_a_change_is_a_new_version_and_what_has_gone_is_gone(published, data, tmp_path):
    before, old = published.read("/cluster/large")
    source = tmp_path / "source"
    source.write_bytes(data[MIB : 6 * MIB])
    published.put(source, "/published/large", "-f")
    # What the NameNode told is believed for a second, and a put may take less.
    wait_until("the new version", lambda: published.read("/cluster/large")[1] != old, 10)
    after, new = published.read("/cluster/large")
    assert (before, after) == (data[: 9 * MIB + 77], data[MIB : 6 * MIB])
    assert old != new
    published.webhdfs("PUT", "/published/large", "RENAME&destination=/published/moved")
    wait_until("the old name has gone", lambda: published.get("/cluster/large").returncode == 4, 10)
    assert published.read("/cluster/moved")[0] == after
    published.webhdfs("DELETE", "/published/moved", "DELETE")
    wait_until("it has gone", lambda: published.get("/cluster/moved").returncode == 4, 10)


def test_a_file_is_published_when_its_writer_closes_it(published, data):
    writer = SlowWriter(published.bed.cluster, "/published/written")
    writer.write(data[: 2 * MIB])
    wait_until("it is open", lambda: "written" in published.trunkline("repo", "ls", "/cluster", "--by-name").stdout, 30)
    published.refused("/cluster/written")
    assert 'file not published path="/published/written" why=it is being written' in published.log()
    writer.finish()
    wait_until("it is there", lambda: published.get("/cluster/written").returncode == 0, 10)
    assert published.read("/cluster/written")[0] == data[: 2 * MIB]


def test_what_dies_in_the_cluster(published, data, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(data)
    published.put(source, "/published/whole")
    cluster = published.bed.cluster
    cluster.datanodes[0].process.kill()
    # Every block has two other replicas. This is more than the router caches, so it is read from DataNodes again later.
    found, versioned = published.read("/cluster/whole")
    assert found == data
    assert published.process.rss_bytes() < 96 * MIB
    namenode = next(p for p in published.bed.stage.processes if p.name == "namenode")
    namenode.kill()
    said = published.refused("/cluster/other")
    assert "/cluster/other" in said
    assert f"NameNode at {cluster.http}" in published.log()
    assert "only known versions are served" in published.log()
    version = versioned.rpartition("v=")[2]
    assert published.read("/cluster/whole", "--version", version)[0] == data
    assert published.process.running()
