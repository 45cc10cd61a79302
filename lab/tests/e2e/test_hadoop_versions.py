"""The one jar in older versions of Hadoop, in short; `make test-all` has the other end-to-end tests in them too."""

import subprocess
import zipfile

import pytest
from conftest import MIB, in_mid_write

from trunkline_lab import paths, stock

pytestmark = pytest.mark.e2e

SOURCES = paths.ROOT / "hadoop" / "plugin" / "src" / "main" / "java"
OLDER = pytest.mark.parametrize("hadoop", stock.VERSIONS[:-1])


@OLDER
def test_compiled_against_it_the_jar_is_the_same(hadoop, tmp_path):
    """Byte for byte: so each member of Hadoop that it uses is there, and where it was when the jar was built."""
    path = ":".join([*stock.classpath(hadoop=hadoop), str(paths.built(paths.PLUGIN_JAR))])
    # As in hadoop/plugin/pom.xml; the jar is on the path for the library that it carries.
    options = ["--release", "17", "-g", "-XDstringConcat=inline", "-proc:none", "-nowarn", "-implicit:none"]
    files = [str(file) for file in SOURCES.rglob("*.java")]
    command = [paths.java("javac"), *options, "-cp", path, "-d", str(tmp_path), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled = sorted(tmp_path.rglob("*.class"))
    assert len(compiled) >= len(files)
    with zipfile.ZipFile(paths.PLUGIN_JAR) as jar:
        shipped = {name: jar.read(name) for name in jar.namelist()}
    names = [str(file.relative_to(tmp_path)) for file in compiled]
    assert [name for name, file in zip(names, compiled, strict=True) if shipped[name] != file.read_bytes()] == []


@OLDER
@pytest.mark.planes("ndn", "ucx")
def test_put_kill_and_get(make_bed, hadoop, data, tmp_path):
    """A DataNode is killed in mid-write; the file is whole, on three DataNodes, and read by the plane."""
    bed = make_bed(hadoop=hadoop)
    writer = in_mid_write(bed, data)
    bed.pipeline("/file")[1].process.kill()
    writer.write(data[24 * MIB :])
    writer.finish()
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()
    kind = {"ndn": "named", "ucx": "ucx"}[bed.plane.name]
    assert bed.transport("client")[f"{kind}_reads"] > 0
    assert bed.cluster.jmx("Hadoop:service=NameNode,name=NameNodeInfo")["SoftwareVersion"] == hadoop
