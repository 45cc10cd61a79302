"""A controller that takes over from one whose policy it does not know."""

import asyncio
import json
import urllib.request

import controllers
import edges
import speakers

POLICY = """\
name: small
queues: {q0: {number: 0, dscp: 0}, q1: {number: 1, dscp: 8}}
default: q0
ports:
  hosts: &all {rate: 1gbit, queues: {q0: {max: 1gbit}, q1: {max: 1gbit}}}
  switches: *all
roles: {nodemanager: [10.0.0.1, 10.0.0.2]}
categories: {shuffle: q1}
"""
PASSING = 3  # entries where there is no policy
WHAT = "a policy that this controller does not know"


def of_policies(speaker):
    """Entries with a policy's cookie, as they came in."""
    mark = 0x7472 << 16 | 2
    return {key: value for key, value in speaker.flows.items() if int.from_bytes(value[0][:4]) == mark}


def ask(controller, method, body=None):
    request = urllib.request.Request(
        f"{controller.url}v1/policy", body, {"Content-Type": "application/yaml"}, method=method
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def test_the_policy_in_force_stays_until_one_is_applied_or_cleared(tmp_path):
    def alerts(controller):
        return [alert["what"] for alert in controller.status()["alerts"]]

    async def run():
        fabric = speakers.Fabric()
        with controllers.running(tmp_path / "first") as first:
            await speakers.connect(fabric, [1], first.openflow_port)
            await asyncio.to_thread(ask, first, "PUT", POLICY.encode())
            await edges.until("the policy is in force", lambda: of_policies(fabric.speakers[1]))
            while not (await asyncio.to_thread(first.status))["converged"]:
                await asyncio.sleep(0.1)
        had = fabric.speakers[1].flows
        policy = of_policies(fabric.speakers[1])
        with controllers.running(tmp_path / "second") as second:
            fabric = speakers.Fabric()
            loop = asyncio.get_running_loop()
            speaker = speakers.Speaker(fabric, 1)
            speaker.flows = {key: value for key, value in had.items() if key[:2] != (0, 1)}
            await loop.create_connection(lambda: speaker, "127.0.0.1", second.openflow_port)
            while not any(WHAT in what for what in await asyncio.to_thread(alerts, second)):
                await asyncio.sleep(0.1)
            # A host that comes is a change after which all tables are as they should be.
            speaker.fabric.hosts[1, 1] = "02:00:00:00:00:01"
            port = speaker._port_desc(b"")[0]
            speaker.transport.write(speakers.bare(12, 0, b"\0" * 8 + port))
            for _ in range(600):
                speaker.announce()
                await asyncio.sleep(0.1)
                if speaker.forward and (await asyncio.to_thread(second.status))["converged"]:
                    break
            assert speaker.forward
            assert len(policy) > PASSING
            assert of_policies(speaker) == policy
            await asyncio.to_thread(ask, second, "DELETE")
            await edges.until("it is out of force", lambda: len(of_policies(speaker)) == PASSING)
            while any(WHAT in what for what in await asyncio.to_thread(alerts, second)):
                await asyncio.sleep(0.1)
        # What there is without a policy is no policy.
        with controllers.running(tmp_path / "third") as third:
            again = speakers.Speaker(fabric, 1)
            again.flows = {key: value for key, value in speaker.flows.items() if key[:2] != (0, 1)}
            await loop.create_connection(lambda: again, "127.0.0.1", third.openflow_port)
            while not (await asyncio.to_thread(third.status))["converged"]:
                await asyncio.sleep(0.1)
            assert not any(WHAT in what for what in await asyncio.to_thread(alerts, third))

    asyncio.run(asyncio.wait_for(run(), 180))
