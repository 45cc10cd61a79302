"""Many small switches at once: all get all they should have, and no more than that is sent."""

import asyncio

import controllers
import openvswitch
import speakers

LEAVES, SPINES, HOSTS = 12, 3, 60


def test_many_switches_and_hosts_converge_and_nothing_is_sent_twice(tmp_path):
    async def converge(controller):
        fabric = speakers.leaf_spine(LEAVES, SPINES, HOSTS)
        switches = range(1, LEAVES + SPINES + 1)
        await speakers.connect(fabric, list(switches), controller.openflow_port)
        for _ in range(int(openvswitch.GIVE_UP_S * 2)):
            await asyncio.sleep(0.5)
            if all(speaker.forward == HOSTS for speaker in fabric.speakers.values()):
                break
            for speaker in fabric.speakers.values():
                speaker.announce()
        assert {speaker.forward for speaker in fabric.speakers.values()} == {HOSTS}
        assert {len(speaker.groups) for speaker in fabric.speakers.values()} == {LEAVES + SPINES - 1}
        while not (await asyncio.to_thread(controller.status))["converged"]:
            await asyncio.sleep(0.1)
        status, before = await asyncio.to_thread(controller.status), fabric.flow_mods
        assert (status["switches"], status["links"], status["hosts"]) == (LEAVES + SPINES, LEAVES * SPINES, HOSTS)
        await asyncio.sleep(2)
        assert fabric.flow_mods == before
        # A link that is lost and found changes groups and floods, and no entry of a host.
        entries = {dpid: dict(speaker.flows) for dpid, speaker in fabric.speakers.items()}
        cut = fabric.cables.pop((1, 1)), fabric.cables.pop((SPINES + 1, 1))
        while (await asyncio.to_thread(controller.status))["links"] == LEAVES * SPINES:
            await asyncio.sleep(0.1)
        while not (await asyncio.to_thread(controller.status))["converged"]:
            await asyncio.sleep(0.1)
        assert cut
        for dpid, speaker in fabric.speakers.items():
            hosts = {key: value for key, value in speaker.flows.items() if key[:2] == (4, 30)}
            assert hosts == {key: value for key, value in entries[dpid].items() if key[:2] == (4, 30)}

    with controllers.running(tmp_path / "c") as controller:
        asyncio.run(asyncio.wait_for(converge(controller), 3 * openvswitch.GIVE_UP_S))
