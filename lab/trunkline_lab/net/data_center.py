"""A data centre that works: a topology with routers, NameNode, DataNodes and clients on its hosts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import planes, stock, yarn
from ..cluster import Cluster, Plane, Properties
from ..controller import Controller, Settings
from ..mirror_agents import BridgeAgents, MirrorAgents
from ..network import Site
from ..procs import Stage
from ..routers import Router
from ..say import say
from ..transfer import Rig
from . import fabric as fabrics
from . import flows, namespaces, tuning
from .fabric import Fabric
from .meter import LabMeter
from .ports import FACE, SERVICES
from .topology import Topology

DAEMON_BYTES = 400 << 20  # what a Hadoop daemon takes at most
SPARE_DISK_BYTES = 1 << 30  # logs, and what a NameNode wants left before it takes a file
ROUTER_CACHE_BYTES = 64 << 20
HOST_CACHE_BYTES = 8 << 20
PLANES = ("tcp", "ndn")  # of any topology
MIRROR = "mirror"  # of those whose switches all speak OpenFlow, or none of them


@dataclass
class DataCenter:
    """What runs in a fabric: a controller of its OpenFlow switches, `routers` on routers and on hosts that need one, a
    cluster, and YARN on it."""

    fabric: Fabric
    topology: Topology
    stage: Stage
    routers: list[Router]
    cluster: Cluster | None
    yarn: yarn.Yarn | None = None
    controller: Controller | None = None  # where switches speak OpenFlow, or bridges mirror
    agents: MirrorAgents | None = None  # on the plane "mirror"
    bridges: BridgeAgents | None = None  # the same, where bridges make the copies


def needed_bytes(topology: Topology) -> int:
    """Memory that the daemons of a topology take at most."""
    roles = topology.roles
    daemons = len(roles.datanodes) + bool(roles.namenode) + len(roles.clients)
    # A NodeManager has tasks beside it.
    daemons += bool(roles.resourcemanager) + bool(roles.historyserver) + 3 * len(roles.nodemanagers)
    return daemons * DAEMON_BYTES


def shared_hosts(topology: Topology) -> tuple[str, ...]:
    """Hosts that need a forwarder of their own: those with a client, or tasks of jobs, beside a DataNode.

    Without one, what a client writes would go to the rack's router and back to the DataNode next to it.
    """
    writing = dict.fromkeys((*topology.roles.clients, *topology.roles.nodemanagers))
    return tuple(host for host in writing if host in topology.roles.datanodes)


def routers(
    fabric: Fabric,
    topology: Topology,
    stage: Stage,
    directory: Path,
    hosts: Sequence[str],
    *,
    cache_bytes: int,
    host_cache_bytes: int = HOST_CACHE_BYTES,
    cache_policy: str = "lru",
) -> list[Router]:
    """A forwarder on each router of the topology and on each of `hosts`, none of them started."""
    return [
        Router(
            stage,
            node,
            directory / "conf" / f"router-{node}.toml",
            fabric.directory / f"{node}.sock",
            listen=f"tcp://{topology.address(node)}:{FACE}" if node in topology.routers else "",
            connect=[f"tcp://{topology.address(up)}:{FACE}" for up in [uplink(topology, node)] if up],
            local_apps=apps_socket(fabric, node) if node in hosts else None,
            cache_bytes=cache_bytes if node in topology.routers else host_cache_bytes,
            cache_policy=cache_policy,
        )
        for node in (*topology.routers, *hosts)
    ]


def launch(running: Sequence[Router]) -> None:
    """Starts them side by side; returns when all answer."""
    for router in running:
        router.launch()
    for router in running:
        router.wait()


def uplink(topology: Topology, node: str) -> str | None:
    """The router that a node's forwarder connects to: routers form a tree, from the last of the file down."""
    if node not in topology.routers:
        return topology.router_of(node)
    root, at = topology.routers[-1], node
    for link in topology.path(node, root):
        at = link.other(at)
        if at in topology.routers:
            return at
    return None


def apps_socket(fabric: Fabric, host: str) -> Path:
    """Where the processes of a host find its forwarder."""
    return fabric.directory / f"{host}.apps.sock"


def plane(name: str, fabric: Fabric, topology: Topology, on_hosts: set[str], directory: Path) -> Plane:
    """The plane "tcp" or "ndn"; `on_hosts` are those with a forwarder of their own."""
    if name == "tcp":
        return planes.tcp()

    def face_of(label: str) -> str:
        host = label.partition(".")[0]
        if host in on_hosts:
            return f"unix://{apps_socket(fabric, host)}"
        router = topology.router_of(host)
        if router is None:
            raise fabrics.LabError(f"{topology.name} has no router; the plane ndn needs one")
        return f"tcp://{topology.address(router)}:{FACE}"

    return planes.named(face_of, directory, SERVICES["datanode-named"])


def mirrored(controller: Controller | None, topology: Topology, directory: Path, wait_ms: str) -> Plane:
    """The plane "mirror"; the topology is `on` it. `wait_ms` as for `planes.mirror`."""
    if controller is None:
        raise fabrics.LabError(f"{topology.name}: the plane mirror needs a switch or a router between its hosts")
    return planes.mirror(
        topology.roles.datanodes,
        controller.url,
        controller.token_file,
        directory,
        SERVICES["datanode-named"],
        wait_ms=wait_ms,
    )


def on(plane_name: str, topology: Topology) -> Topology:
    """The topology as the fabric of a plane has it: where blocks are mirrored, there is a controller."""
    return topology.mirrored() if plane_name == MIRROR else topology


def site(fabric: Fabric, topology: Topology) -> Site:
    """Where a topology's cluster runs; every host has the usual ports."""
    roles = topology.roles

    def hosted(host: str) -> tuple[str, str]:
        return host, topology.address(host)

    return Site(
        hosted(roles.namenode),
        tuple(map(hosted, roles.datanodes)),
        tuple(map(hosted, roles.clients or (roles.namenode,))),
        lambda _address, service: SERVICES[service],
        lambda: namespaces.inside(fabric.namespace(roles.namenode)),
    )


def start(
    fabric: Fabric,
    topology: Topology,
    stage: Stage,
    plane_name: str,
    directory: Path,
    *,
    cache_bytes: int = ROUTER_CACHE_BYTES,
    cache_policy: str = "lru",
    racks: bool = True,
    extra: Properties | None = None,
    controller: Settings | None = None,
    tuned: bool = False,
    by_doctor: bool = False,
    jvm: Sequence[str] = (),
) -> DataCenter:
    """Starts a controller (where there are switches for it), routers (on the plane "ndn"), agents of mirrored
    replication (on "mirror"), the cluster and YARN in a fabric that is up; returns when all are well.

    The topology is `on` the plane. With `racks` Hadoop is told which host is in which. `controller` are settings of it
    other than the usual. `tuned` has hosts' TCP as on the plane "mirror"; `jvm` are options of all of Hadoop's JVMs.
    `by_doctor` has that plane's hosts as Linux has them by itself, but for what `trunkline mirror doctor --fix` changes
    at those with a DataNode, and leaves the plug-in's settings as they are by default.
    """
    if by_doctor:
        tuning.defaults(fabric, topology)
    elif tuned or plane_name == MIRROR:
        tuning.hosts(fabric, topology)
    own_controller = bridges = None
    if topology.controlled:
        say(f"starting the controller of {len(topology.controlled)} switches")
        settings = {**({"mirror": {"enabled": True}} if plane_name == MIRROR else {}), **(controller or {})}
        own_controller = Controller(stage, fabric, topology, directory, settings)
        if topology.bridges_mirror:
            own_controller.start_controller()
            bridges = BridgeAgents(stage, fabric, topology, directory, own_controller)
            bridges.start()
        else:
            own_controller.start()
        own_controller.introduce()
    running: list[Router] = []
    if plane_name == "ndn":
        running = routers(
            fabric,
            topology,
            stage,
            directory,
            shared_hosts(topology),
            cache_bytes=cache_bytes,
            cache_policy=cache_policy,
        )
        launch(running)
    center = DataCenter(fabric, topology, stage, running, None, controller=own_controller, bridges=bridges)
    if not topology.roles.namenode:
        return center
    if plane_name == MIRROR:
        carried = mirrored(own_controller, topology, directory, planes.DEFAULT if by_doctor else planes.MIRROR_WAIT_MS)
        assert own_controller is not None
        center.agents = MirrorAgents(stage, fabric, topology, directory, own_controller)
        center.agents.start(fix=by_doctor)
    else:
        on_hosts = {router.host for router in running} & set(topology.hosts)
        carried = plane(plane_name, fabric, topology, on_hosts, directory)
    jars, containers, place = None, [], yarn_place(topology)
    if place:
        jars = stock.classpath(pom=stock.YARN)
        containers = yarn.class_path_of_containers(directory, jars, carried.jars)
    own = properties(topology, directory, containers, racks=racks, extra=extra)
    cluster = center.cluster = Cluster(stage, directory, site(fabric, topology), carried, extra=own, jars=jars, jvm=jvm)
    say(f"{plane_name}: starting a NameNode and {len(cluster.datanodes)} DataNodes in {topology.name}")
    cluster.start()
    if place:
        say(f"{plane_name}: starting a ResourceManager and {len(place.nodemanagers)} NodeManagers")
        center.yarn = yarn.Yarn(cluster, place)
        center.yarn.start()
    return center


def properties(
    topology: Topology, directory: Path, containers: list[str], *, racks: bool, extra: Properties | None
) -> Properties:
    """What all hosts are told beside a cluster's usual: YARN's settings, racks, and `extra`, which has the last word.

    `containers` is the class path of YARN's containers.
    """
    place = yarn_place(topology)
    found = yarn.properties(place, containers) if place else {}
    return {**found, **(rack_properties(topology, directory) if racks else {}), **(extra or {})}


def rack_table(topology: Topology, directory: Path) -> Path:
    """Which host is in which rack, as lines of an address and a rack: what Hadoop and `cache-potential` read."""
    table = directory / "racks.txt"
    table.write_text("".join(f"{topology.address(host)} {rack}\n" for host, rack in topology.racks.items()))
    return table


def rack_properties(topology: Topology, directory: Path) -> Properties:
    """Tells Hadoop the racks, by its own mapping from a file, which does what a topology script does without one."""
    return {
        "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping",
        "net.topology.table.file.name": str(rack_table(topology, directory)),
    }


def yarn_place(topology: Topology) -> yarn.Place | None:
    """Where a topology's YARN runs; None where it has none."""
    roles = topology.roles
    if not roles.resourcemanager:
        return None

    def hosted(host: str) -> tuple[str, str]:
        return host, topology.address(host)

    return yarn.Place(
        hosted(roles.resourcemanager),
        tuple(map(hosted, roles.nodemanagers)),
        hosted(roles.historyserver) if roles.historyserver else None,
        lambda _address, service: SERVICES[service],
    )


class LabRig(Rig):
    """A data centre whose commands are measured."""

    def __init__(self, center: DataCenter, meter: LabMeter) -> None:
        assert center.cluster is not None
        super().__init__(center.cluster, meter, center.routers)
        self.center, self.topology = center, center.topology


@contextmanager
def rig(
    topology: Topology,
    plane_name: str,
    directory: Path,
    *,
    lab: str = fabrics.DEFAULT_LAB,
    cache_bytes: int = ROUTER_CACHE_BYTES,
    cache_policy: str = "lru",
    racks: bool = True,
    extra: Properties | None = None,
    disk_bytes: int = 0,
    controller: Settings | None = None,
    tuned: bool = False,
    by_doctor: bool = False,
    jvm: Sequence[str] = (),
) -> Iterator[LabRig]:
    """A data centre for the length of the block; nothing of it stays but logs and configuration.

    `disk_bytes` is what will be written there at most, all replicas counted.
    """
    topology = on(plane_name, topology)
    with standing(topology, directory, lab, disk_bytes) as (fabric, stage):
        center = start(
            fabric,
            topology,
            stage,
            plane_name,
            directory,
            cache_bytes=cache_bytes,
            cache_policy=cache_policy,
            racks=racks,
            extra=extra,
            controller=controller,
            tuned=tuned,
            by_doctor=by_doctor,
            jvm=jvm,
        )
        assert center.cluster is not None

        def owners() -> list[tuple[int, str]]:
            """Tasks of jobs are children of NodeManagers, and clients of HDFS."""
            started = {p.pid: p.name for p in list(stage.processes) if p.popen.returncode is None}
            tasks = [pid for pids in fabric.processes().values() for pid in pids] if center.yarn else []
            return [
                *((pid, flows.CLIENT if name.startswith("client-") else name) for pid, name in started.items()),
                *((pid, flows.CLIENT) for pid in tasks if pid not in started),
            ]

        meter = LabMeter(fabric, topology, owners)
        try:
            yield LabRig(center, meter)
        finally:
            meter.close()


@contextmanager
def standing(topology: Topology, directory: Path, lab: str, disk_bytes: int = 0) -> Iterator[tuple[Fabric, Stage]]:
    """A fabric and a stage for its processes, both ended with the block."""
    fabrics.preflight(needed_bytes(topology), directory, SPARE_DISK_BYTES + disk_bytes, topology)
    fabric = Fabric(lab)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with fabric.locked():
        fabric.up(topology)
        try:
            with Stage(directory / "logs", on_host=fabric.command) as stage:
                yield fabric, stage
        finally:
            try:
                fabric.down()
            except OSError as error:  # what was measured is not lost for that
                say(f"the lab {lab} is not removed: {error}; `lab down --lab {lab}` tries again")
            for left in ("data", "namenode", "tmp"):
                shutil.rmtree(directory / left, ignore_errors=True)
