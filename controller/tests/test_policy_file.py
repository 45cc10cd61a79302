"""A policy file is taken whole or refused whole, with all that is wrong, each with its line and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trunkline_controller.jobs.target import Target, target
from trunkline_controller.policy import file as policy_file
from trunkline_controller.policy import hosts, values
from trunkline_controller.policy.file import parse
from trunkline_controller.policy.model import Category, Policy, PolicyError, Role, Share, Toward

PAPER = (Path(__file__).parent.parent / "policy.paper.yaml").read_text()
SAMPLE = (Path(__file__).parent.parent / "policy.sample.yaml").read_text()

START = """\
queues:
  q0: { number: 0, dscp: 0 }
  q1: { number: 1, dscp: 11, priority: 1 }
default: q0
"""


def nobody(names):
    return dict.fromkeys(names, "Name or service not known")


def many(count, name):
    """Keys of a mapping in braces."""
    return ", ".join(f"{name}{n}: {{}}" for n in range(count))


def problems(text, resolve=nobody):
    with pytest.raises(PolicyError) as caught:
        parse(text, "p.yaml", resolve)
    for problem in caught.value.problems:
        assert problem.file == "p.yaml"
        assert problem.what
        assert problem.remedy
    return {(problem.line, problem.what, problem.remedy) for problem in caught.value.problems}


def only(text, resolve=nobody):
    found = problems(text, resolve)
    assert len(found) == 1, found
    return found.pop()


def test_the_papers_three_queues():
    policy = parse(PAPER, "policy.paper.yaml", nobody)
    assert policy.warnings == ()
    assert policy.name == "three-queues"
    assert policy.text == PAPER
    for toward in Toward:
        ports = policy.port_classes[toward]
        assert ports.toward == toward
        assert ports.rate_bit_s == 300_000_000
        assert {name: share.max_bit_s for name, share in ports.shares.items()} == {
            "q0": 50_000_000,
            "q1": 200_000_000,
            "q2": 5_000_000,
        }
    assert policy.categories["shuffle"] == "q1"
    assert policy.categories["iperf"] == "q2"
    assert set(policy.categories) == {*map(str, Category), "iperf"}


def test_the_sample_holds_nothing_back_and_has_a_queue_for_dynamic_control():
    policy = parse(SAMPLE, "policy.sample.yaml", nobody)
    assert policy.warnings == ()
    assert set(policy.categories) == set(map(str, Category))
    for ports in policy.port_classes.values():
        assert set(ports.shares) == set(policy.queues)
        assert all(share.max_bit_s == 0 and share.max_percent in (None, 100) for share in ports.shares.values())
        assert sum(share.min_percent or 0 for share in ports.shares.values()) <= 100
    assert target(policy, "lifted") == Target("jobs", "lifted")


def test_what_a_file_leaves_out_has_its_default():
    policy = parse(START, "/etc/trunkline/night.yaml", nobody)
    assert policy.name == "night"
    assert set(policy.categories.values()) == {"q0"}
    assert policy.queues["q0"].priority == 4
    assert policy.port_classes == {}


def test_percentages_are_of_the_ports_rate_where_the_file_says_it():
    shares = "queues: {q0: {max: 50%}, q1: {min: 10%, max: 1.5gbit}}"
    known = parse(START + f"ports: {{hosts: {{rate: 2gbit, {shares}}}}}", "p", nobody).port_classes["hosts"]
    assert known.shares == {"q0": Share(0, 10**9), "q1": Share(2 * 10**8, 15 * 10**8)}
    unknown = parse(START + f"ports: {{hosts: {{{shares}}}}}", "p", nobody).port_classes["hosts"]
    assert unknown.rate_bit_s == 0
    assert unknown.shares == {"q0": Share(0, 0, None, 50.0), "q1": Share(0, 15 * 10**8, 10.0, None)}


@pytest.mark.parametrize(
    ("text", "line", "what", "remedy"),
    [
        (START + "queus: {}", 5, "the policy has no key queus", "did you mean queues?"),
        (START + "categories: {shuffle: q3}", 5, "queue of category shuffle is 'q3'", "there are q0, q1"),
        (START + "categories:\n  shufle: q1", 6, "there is no category shufle", "did you mean shuffle?"),
        (START + "roles:\n  datanodes: [10.0.0.1]", 6, "a role is 'datanodes'", "did you mean datanode?"),
        (START + "services:\n  shufle: 1", 6, "a service is 'shufle'", "did you mean shuffle?"),
        (START + "services:\n  shuffle: 70000", 6, "a port of service shuffle is '70000'", "from 1 to 65535"),
        (START + "services:\n  shuffle: 8020", 6, "port 8020 is of service", "ports of its own"),
        ("queues: {a: {number: 0, dscp: 0}}\n", 1, "there is no default queue", "write default: a"),
        (START.replace("default: q0", "default: q9"), 4, "the default queue is 'q9'", "there are q0, q1"),
        ("default: q0\n", 1, "there are no queues", "write queues"),
        ("queues: {}\ndefault: q0\n", 1, "there are no queues", "write queues"),
        (START.replace("number: 1", "number: 0"), 3, "queue q1 has number 0, as q0 has", "of its own"),
        (START.replace("dscp: 11", "dscp: cs0"), 3, "queue q1 has dscp 0, as q0 has", "of its own"),
        (START.replace("dscp: 11", "dscp: 64"), 3, "dscp of queue q1 is '64'", "from 0 to 63"),
        (START.replace("number: 1", "number: 61440"), 3, "number of queue q1 is '61440'", "to 61439"),
        (START.replace("priority: 1", "priority: 8"), 3, "priority of queue q1 is '8'", "from 0 to 7"),
        (START.replace("number: 1, ", ""), 3, "queue q1 has no number", "number: 0"),
        (START + "default: q1", 5, "the policy has default twice", "it is also at line 4"),
        (START + "ports: {hosts: {rate: 300}}", 5, "rate of port class hosts is '300'", "such as 300mbit"),
        (START + "ports: {hosts: {rate: 10%}}", 5, "rate of port class hosts is '10%'", "such as 300mbit"),
        (START + "ports: {hosts: {rate: 300mb\N{LATIN SMALL LETTER DOTLESS I}t}}", 5, "rate of port", "as 300mbit"),
        (START.replace("number: 1", "number: \N{ARABIC-INDIC DIGIT ONE}"), 3, "number of queue q1", "to 61439"),
        (START + "ports: {hosts: {rate: 1kbit}}", 5, "below 16kbit", "give the port more"),
        (START + "ports: {core: {rate: 1gbit}}", 5, "does not say which ports", "toward"),
        (START + "ports: {a: {toward: hosts}, hosts: {}}", 5, "as a at line 5 is", "name the ports"),
        (START + "ports: {a: {toward: hosts, glob: x}}", 5, "has toward and glob", "give one of"),
        (START + "ports: {a: {regex: x}}", 5, "port class a has no key regex", "there are glob, ports"),
        (START + f"ports: {{a: {{glob: {'x' * 101}}}}}", 5, "glob of port class a", "at most 100 characters"),
        (START + f"ports: {{{many(65, 'p')}}}", 5, "there are 65 port classes", "64 is the most"),
        (f"queues: {{{many(65, 'q')}}}\ndefault: q0\n", 1, "there are 65 queues", "64 is the most"),
        (START + "services: {shuffle: 2000-2064}", 5, "service shuffle has 65 ports", "64 is the most"),
        (START + f"services: {{shuffle: {[7] * 65}}}", 5, "service shuffle has 65 ports", "64 is the most"),
        (START + "ports: {a: {ports: []}}", 5, "names no port", "s1/eth3"),
        (
            START + "ports:\n  hosts:\n    rate: 100mbit\n    queues:\n      q0: {min: 60%}\n      q1: {min: 50mbit}",
            9,
            "minimum rates of port class hosts sum to 110mbit, above the port's 100mbit",
            "lower some",
        ),
        (START + "ports: {hosts: {queues: {q0: {min: 60%}, q1: {min: 50%}}}}", 5, "sum to 110%", "lower some"),
        (
            START + "ports: {hosts: {rate: 1gbit, queues: {q1: {min: 20mbit, max: 1%}}}}",
            5,
            "max of queue q1 of port class hosts is less than its min",
            "raise max or lower min",
        ),
        (START + "ports: {hosts: {queues: {q1: {min: 20%, max: 1%}}}}", 5, "less than its min", "raise max"),
        (START + "ports: {hosts: {queues: {q1: {min: 2mbit, max: 1mbit}}}}", 5, "less than its min", "raise max"),
        (START + "ports: {hosts: {queues: {q1: {max: 0%}}}}", 5, "is 0%", "more"),
        (START + "ports: {hosts: {rate: 1mbit, queues: {q1: {max: 2mbit}}}}", 5, "more than the port's", "less"),
        (START + "ports: {hosts: {queues: {q7: {}}}}", 5, "a queue of port class hosts is 'q7'", "there are q0, q1"),
        (START + "roles: {datanode: [10.0.0.5/24]}", 5, "'10.0.0.5/24'", "10.0.0.0/24, or the address as 10.0.0.5"),
        (START + "roles: {datanode: [10.0.0.256]}", 5, "'10.0.0.256'", "write an address"),
        (START + "roles: {datanode: [dn7]}", 5, "host name dn7 of role datanode can't be resolved", "its address"),
        (START + "roles: {datanode: []}", 5, "empty list of hosts", "name a host"),
        (START + "roles: {datanode: [[a]]}", 5, "a host of role datanode is a list", "write an address"),
        (START + "categories: {m: {queue: q1}}", 5, "there is no category m", "needs queue and match"),
        (START + "categories: {m: {match: [{port: 1}]}}", 5, "category m has no queue", "write queue"),
        (START + "categories: {m: {queue: q1, match: [{prot: 1}]}}", 5, "has no key prot", "did you mean"),
        (START + "categories: {m: {queue: q1, match: [{}]}}", 5, "matches every packet", "default"),
        (START + "categories: {m: {queue: q1, match: [{port: 5-1}]}}", 5, "'5-1'", "range"),
        (START + "categories: {m: {queue: q1, match: [{port: []}]}}", 5, "empty list of ports", "name a port"),
        (START + "categories: {m: {queue: q1, match: [{protocol: icmp}]}}", 5, "'icmp'", "there are tcp, udp"),
        (
            START + "categories: {m: {queue: q1, match: [{port: 1, source-port: 2}]}}",
            5,
            "has port beside source-port",
            "keep the longer words",
        ),
        (
            START + "categories: {m: {queue: q1, match: [{source-role: datanode}]}}",
            5,
            "by role datanode, which no host has",
            "name its hosts",
        ),
        (
            START + "categories: {m: {queue: q1, match: [{source-port: 1-256, destination-port: 1-256}]}}",
            5,
            "rules, more than 5000",
            "fewer ports",
        ),
        (START + "categories: {other: {queue: q1, match: [{port: 1}]}}", 5, "category other has match", "leave match"),
        (START + "marks: {categories: {}}", 5, "marks trust nobody", "trust"),
        (START + "marks: {trust: [datanode]}", 5, "trust role datanode, which no host has", "name its hosts"),
        (
            START.replace("dscp: 11", "dscp: 8") + "marks: {trust: [10.0.0.1]}",
            5,
            "mark 8 of category replication (queue q0) is queue q1's own",
            "give queue q1 another dscp, such as 3",
        ),
        (
            START + "marks: {trust: [10.0.0.1], categories: {shuffle: 18}}\ncategories: {shuffle: q1}",
            5,
            "mark 18 is of category shuffle and of client-write",
            "a mark of its own",
        ),
        (START + "limits: {entries: 10}", 5, "flow entries on each switch, more than 10", "raise entries"),
        (START + "a: &x [*x]", 5, "alias *x", "put &x before"),
        (START + "a: !!python/object:os.system x", 5, "tag", "leave the tag out"),
        (START + "a: [", 5, "not valid YAML", "mend the syntax"),
        (START + "---\nname: b", 5, "a second document", "one policy"),
        ("", 1, "the policy is empty", "policy.sample.yaml"),
        ("[]", 1, "the policy is a list", "write keys"),
        ("[" * 5000, 1, "nested deeper", "five"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_the_way_out(text, line, what, remedy):
    found = problems(text)
    assert [p for p in found if p[0] == line and what in p[1] and remedy in p[2]], found


def test_all_that_is_wrong_is_said_at_once():
    text = (
        "queues:\n  a: {number: x, dscp: 0}\n  b: {number: 1, dscp: 99}\ndefault: c\n"
        "categories:\n  shufle: a\n  split: d\nroles:\n  namenod: 1.2.3.4\n"
    )
    assert sorted(line for line, *_ in problems(text)) == [2, 3, 4, 6, 7, 9]


def test_text_that_is_not_utf_8_has_a_line_too():
    with pytest.raises(PolicyError) as caught:
        parse(START.encode() + b"\n\xff", "p.yaml")
    assert caught.value.problems[0].line == 6


def test_aliases_are_written_out_within_bounds():
    shared = START + "ports: {hosts: &all {rate: 1gbit}, switches: *all}"
    assert parse(shared, "p", nobody).port_classes["switches"].rate_bit_s == 10**9
    bomb = "a: &a [" + ",".join("x" * 50) + "]\n"
    for one, two in zip("abcdefg", "bcdefgh", strict=True):
        bomb += f"{two}: &{two} [" + ",".join([f"*{one}"] * 50) + "]\n"
    assert "aliases written out" in only(bomb)[1]


def test_a_file_of_any_size_is_bounded():
    assert "bytes, more than" in only("#" * (1 << 20))[1]
    assert "values, aliases" in only("x: [" + "a," * 60_000 + "]")[1]


def test_host_names_are_asked_for_once_and_together():
    asked = []

    def resolve(names):
        asked.append(names)
        return {name: ("10.0.0.1", "fd00::1") if name == "dn1" else ("10.0.0.2",) for name in names}

    policy = parse(
        START + "roles: {datanode: [dn1, dn2, 10.0.0.3]}\nmarks: {trust: [datanode, cl1]}\n"
        "categories: {m: {queue: q1, match: [{source: cl1, port: 1}, {destination: 10.0.0.9}]}}",
        "p",
        resolve,
    )
    assert asked == [{"dn1", "dn2", "cl1"}]
    assert policy.roles[Role.DATANODE] == ("10.0.0.1", "10.0.0.2/31", "fd00::1")


def test_the_system_is_asked_for_names_within_a_time():
    assert hosts.resolve(frozenset({"localhost"}))["localhost"].startswith("only ")
    answer = hosts.resolve(frozenset({"no-such-host.invalid"}), 20)["no-such-host.invalid"]
    assert isinstance(answer, str)
    assert hosts.resolve(frozenset({"a.invalid"}), 0) == {"a.invalid": "no answer in 0 s"}


def warnings(text):
    return [(problem.line, problem.what) for problem in parse(text, "p", nobody).warnings]


def test_rules_that_can_never_match_are_warned_of():
    text = START + (
        "categories:\n  wide: {queue: q1, match: [{protocol: tcp, source: 10.0.0.0/8}]}\n  narrow:\n"
        "    queue: q0\n    match: [{protocol: tcp, source: 10.1.0.0/16, destination-port: 80, replies: false}]\n"
    )
    (line, what), *others = warnings(text)
    assert (line, others) == (9, [])
    assert "category narrow never matches: wide at line 6 takes it first" in what


def test_a_category_that_no_host_can_have_is_warned_of():
    assert warnings(START + "categories: {replication: q1, shuffle: q1}") == [
        (5, "nothing is of category replication: no host has role datanode")
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("services:\n  shuffle: []", 5),
        ("services:\n  shuffle:", 5),
        ("categories:\n  shuffle: {queue: q1, match: []}", 6),
        ("categories:\n  shuffle: {queue: q1, match: }", 6),
    ],
)
def test_a_category_that_is_left_no_rule_is_warned_of(text, line):
    assert warnings(START + text) == [(line, "nothing is of category shuffle: it has no rule")]


keys = st.sampled_from([*policy_file.KEYS, "q0", "q1", "number", "dscp", "hosts", "rate", "min", "match", "shuffle"])
scalars = st.one_of(
    keys,
    st.none(),
    st.integers(-10, 100_000),
    st.text(max_size=12),
    st.sampled_from(["10%", "300mbit", "10.0.0.1", "10.0.0.0/8", "fd00::/7", "af11", "1-9", "datanode", "*x", "&x 1"]),
)
trees = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=5))
)


def flow(tree) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(flow, tree)) + "]"
    return "" if tree is None else str(tree)


def parses_or_says(data):
    try:
        assert isinstance(parse(data, "p.yaml", nobody), Policy)
    except PolicyError as error:
        assert error.problems
        lines = data.count(b"\n" if isinstance(data, bytes) else "\n") + 1
        for problem in error.problems:
            assert 1 <= problem.line <= max(lines, len(str(data).splitlines()) + 1)
            assert problem.what
            assert problem.remedy
            assert "\n" not in str(problem)


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@settings(max_examples=200, deadline=None)
def test_no_bytes_crash_it(data):
    parses_or_says(data)


@given(st.text(alphabet=st.sampled_from("ab:-[]{},&*!|>'\"%#? \n\t@`\x85\u2028"), max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_text_crashes_it(text):
    parses_or_says(text)


@given(st.dictionaries(keys, trees, max_size=8))
@settings(max_examples=100, deadline=None)
def test_no_tree_crashes_it(tree):
    parses_or_says(START + "\n".join(f"{key}: {flow(value)}" for key, value in tree.items()))


@given(st.integers(0, len(PAPER) - 1), st.integers(0, 40), st.text(max_size=8))
@settings(max_examples=200, deadline=None)
def test_no_slip_of_the_editor_crashes_it(at, cut, put):
    parses_or_says(PAPER[:at] + put + PAPER[at + cut :])


WORDS = "0123456789.-+%_ bitkmgcsaefBITKMG\N{LATIN SMALL LETTER DOTLESS I}\N{KELVIN SIGN}\N{ARABIC-INDIC DIGIT ONE}"


@given(st.one_of(st.text(max_size=12), st.text(WORDS, max_size=12), st.from_regex(values.RATE, fullmatch=True)))
@settings(max_examples=500)
def test_a_word_is_read_or_refused_with_what_would_be_right(text):
    for read in (values.rate, lambda word: values.number(word, 0, 10), values.code_point, values.ports):
        try:
            read(text)
        except ValueError as error:
            assert str(error).startswith(("write ", "a port has 100%", "10tbit is"))
        else:
            assert text.isascii()


def test_rules_are_not_written_out_beyond_what_is_refused_anyhow(monkeypatch):
    made = []
    rules = policy_file.matching.rules

    def counted(*given):
        for rule in rules(*given):
            made.append(rule)
            yield rule

    monkeypatch.setattr(policy_file.matching, "rules", counted)
    items = ", ".join(["{protocol: tcp, destination-port: 1-100, source-port: 1-20}"] * 20)
    found = problems(START + f"categories: {{m: {{queue: q1, match: [{items}]}}}}")
    assert any("the categories need more than 5000 rules" in what for _, what, _ in found)
    assert len(made) == policy_file.matching.MAX_RULES + 1
