"""A protected cluster as docs/tls.md sets it up: hosts with routers of their own, joined to their rack's by TLS."""

import datetime
import shutil
import subprocess
import time
from dataclasses import dataclass

import pytest
from conftest import MIB, Bed, SlowWriter, a_bed, under_way

from trunkline_lab import planes
from trunkline_lab.host_routers import RACK, HostRouters
from trunkline_lab.procs import wait_until
from trunkline_lab.secure_bench import ENCRYPTED

pytestmark = pytest.mark.e2e

needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")

CLIENT = "client"
COUNTED_S = 1.5  # until what has been counted stands in the counters' files
READ_AGAIN = "certificate, key and CA were read again"


@dataclass
class Protected:
    """The cluster, and the routers of its hosts."""

    bed: Bed
    routers: HostRouters

    def put(self, data, path, tmp_path):
        source = tmp_path / "source"
        source.write_bytes(data)
        self.bed.cluster.put(source, path)

    def goes_by_name(self, data, path, tmp_path):
        """A file is written and read by name, and nothing of either by stock TCP."""
        before = {counter: self.bed.total(counter) for counter in ("named_writes", "named_reads", "fallback")}
        self.put(data, path, tmp_path)
        self.bed.assert_whole(path, data, tmp_path)
        assert self.bed.total("named_writes") > before["named_writes"]
        assert self.bed.total("named_reads") > before["named_reads"]
        time.sleep(COUNTED_S)
        assert self.bed.total("fallback") == before["fallback"]

    def goes_by_tcp(self, data, path, tmp_path):
        """A file is written and read with Hadoop's own protection."""
        before = {counter: self.bed.total(counter) for counter in ("named_writes", "named_reads", "fallback")}
        self.put(data, path, tmp_path)
        self.bed.assert_whole(path, data, tmp_path)
        time.sleep(COUNTED_S)
        assert self.bed.total("named_writes") == before["named_writes"]
        assert self.bed.total("named_reads") == before["named_reads"]
        assert self.bed.total("fallback") > before["fallback"]

    def log(self, host):
        router = self.routers.of_host.get(host, self.routers.rack)
        return router.process.log.read_text(errors="replace")

    def change(self, change, *hosts):
        """Returns when the routers of `hosts` have read what `change` has left of their files."""
        before = {host: self.log(host).count(READ_AGAIN) for host in hosts}
        change()
        for host in hosts:
            wait_until(f"{host} to read its files again", lambda h=host: self.log(h).count(READ_AGAIN) > before[h], 20)

    def linked(self):
        """The names in the certificates behind the links of the rack's router."""
        return {name for face in self.routers.rack.faces() for name in face["peer_names"]}

    def new_links(self, *hosts):
        """Has every host connect anew, and waits for those of `hosts`."""
        self.routers.rack.kill()
        self.routers.rack.start()
        names = {f"{host}.{RACK}" for host in hosts}
        wait_until("links of the rack's router", lambda: names <= self.linked(), 30, pause_s=0.2)


@pytest.fixture(scope="module")
def protected(request, plane, formatted):
    made = []

    def set_up(_plane, *where, **how):
        routers = HostRouters(*where, **how)
        made.append(routers)
        routers.rack.start()
        return routers.plane(where[1]), routers.rack

    hadoop, extra = request.config.getoption("hadoop"), ENCRYPTED | planes.RESOLVER
    with a_bed("test_host_routers", plane, formatted, extra=extra, hadoop=hadoop, set_up=set_up) as bed:
        yield Protected(bed, *made)


def test_blocks_go_by_name_from_host_to_host(protected, data, tmp_path):
    protected.goes_by_name(data, "/file", tmp_path)
    assert protected.linked() >= {"client.rack1", "dn1.rack1", "dn4.rack1"}
    links = [face for face in protected.routers.rack.faces() if face["uri"].startswith("tls")]
    assert sum(face["in_bytes"] for face in links) > len(data)
    # A host without its router is on stock TCP, with Hadoop's own protection.
    own = protected.routers.of_host[CLIENT]
    own.kill()
    protected.goes_by_tcp(data[: 4 * MIB], "/by-tcp", tmp_path)
    own.start()
    wait_until("its link", lambda: f"{CLIENT}.{RACK}" in protected.linked(), 30, pause_s=0.2)
    protected.goes_by_name(data[: 4 * MIB], "/by-name-again", tmp_path)


def expiring(authority, folder, name, seconds):
    """Puts a certificate that is valid for so many seconds more, made by OpenSSL, in the place of `name`'s."""
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    work = folder / "openssl"
    work.mkdir()
    (work / "index").touch()
    (work / "serial").write_text("5EED")
    (work / "conf").write_text(
        "[ca]\ndefault_ca = own\n"
        f"[own]\ndatabase = {work}/index\nserial = {work}/serial\nnew_certs_dir = {work}\n"
        "default_md = sha256\npolicy = any\ncopy_extensions = copy\n"
        "[any]\ncommonName = optional\n"
    )
    request, made, key = work / "request", work / "made", folder / f"{name}.key"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    openssl("req", "-new", "-key", key, "-out", request, *subject)
    signed_by = ["-cert", authority / "ca.crt", "-keyfile", authority / "ca.key"]
    valid = ["-startdate", "20260101000000Z", "-enddate", f"{ends:%Y%m%d%H%M%S}Z"]
    openssl("ca", "-batch", "-notext", "-config", work / "conf", *signed_by, *valid, "-in", request, "-out", made)
    (folder / f"{name}.crt").write_bytes(made.read_bytes())
    return ends + datetime.timedelta(seconds=1)  # it is good for all of its last second


def openssl(*words):
    done = subprocess.run(["openssl", *words], check=False, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("another-ca", "the peer's certificate is of another CA"),
        pytest.param("expired", "the peer's certificate expired on", marks=needs_openssl),
    ],
)
def test_a_certificate_that_is_refused_costs_no_write(protected, data, tmp_path, fault, why):
    """A host whose certificate the rack's router does not take: what is being written goes on, all else by TCP."""
    routers, bed = protected.routers, protected.bed
    folder, name = routers.folder(CLIENT), f"{CLIENT}.{RACK}"
    others = ("dn1", "dn2", "dn3", "dn4")
    path = f"/{fault}"
    assert why not in protected.log("router")
    writer = SlowWriter(bed.cluster, path)
    writer.write(data[: 24 * MIB])
    under_way(bed, path, 8 * MIB)
    if fault == "expired":
        ends = []
        protected.change(lambda: ends.append(expiring(routers.authority, folder, name, 30)), CLIENT)
        wait_until("its end", lambda: datetime.datetime.now(datetime.UTC) > ends[0], 60)
        writer.write(data[24 * MIB : 28 * MIB])  # by the link that stands
    else:
        stranger = routers.new_authority("another")  # with a name of its own, so that it is known for what it is
        both = (routers.authority, stranger)
        protected.change(lambda: (routers.certify(CLIENT, stranger), routers.trust(CLIENT, *both)), CLIENT)
    assert name in protected.linked(), "links that stand go on"
    protected.new_links(*others)
    writer.write(data[28 * MIB if fault == "expired" else 24 * MIB :])
    writer.finish()
    bed.assert_whole(path, data, tmp_path)
    assert name not in protected.linked()
    assert why in protected.log("router")
    protected.goes_by_tcp(data[: 4 * MIB], f"{path}-by-tcp", tmp_path)
    # Another certificate, and all is as before.
    routers.certify(CLIENT, routers.authority)
    routers.trust(CLIENT, routers.authority)
    wait_until("its link", lambda: name in protected.linked(), 60, pause_s=0.2)
    protected.goes_by_name(data[: 4 * MIB], f"{path}-by-name", tmp_path)


@pytest.mark.matrix
def test_the_ca_is_replaced_in_mid_write(protected, data, tmp_path):
    """As docs/tls.md has it: both CAs everywhere, then new certificates, then the old CA out."""
    routers, bed = protected.routers, protected.bed
    hosts = ["router", *routers.of_host]
    new, old = routers.new_authority("new"), routers.authority
    fallbacks = bed.total("fallback")
    writer = SlowWriter(bed.cluster, "/replaced")
    writer.write(data[: 24 * MIB])
    under_way(bed, "/replaced", 8 * MIB)
    for step in (
        lambda: [routers.trust(host, old, new) for host in hosts],
        lambda: [routers.certify(host, new) for host in hosts],
        lambda: [routers.trust(host, new) for host in hosts],
    ):
        protected.change(step, *hosts)
    writer.write(data[24 * MIB :])
    writer.finish()
    time.sleep(COUNTED_S)
    assert bed.total("fallback") == fallbacks
    bed.assert_whole("/replaced", data, tmp_path)
    routers.authority = new
    protected.new_links(*routers.of_host)
    protected.goes_by_name(data[: 4 * MIB], "/with-the-new-one", tmp_path)
