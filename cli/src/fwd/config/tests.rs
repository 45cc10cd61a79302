use super::*;
use ndn_io::FaceUri;
use std::time::Duration;

fn read(text: &str) -> Result<FwdConfig, String> {
    parse(Path::new("fwd.toml"), text).map_err(|e| e.to_string())
}

fn refusal(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(said) => said,
    }
}

const SMALLEST: &str = "[[face]]\nlisten = \"unix:///tmp/x.sock\"\n";

#[test]
fn the_smallest_is_the_defaults() {
    let config = read(SMALLEST).expect("a configuration").node;
    let defaults = ndn_forwarder::Config {
        version: config.forwarder.version.clone(),
        ..Default::default()
    };
    assert_eq!(format!("{:?}", config.forwarder), format!("{defaults:?}"));
    assert_eq!(
        config.listeners,
        [ListenConfig::new(
            FaceUri::parse("unix:///tmp/x.sock").expect("a URI")
        )]
    );
    assert!(config.faces.is_empty() && config.strategies.is_empty());
}

#[test]
fn a_connected_face_has_the_defaults() {
    let config = read("[[face]]\nconnect = \"tcp://127.0.0.1:6363\"\n")
        .expect("a configuration")
        .node;
    assert_eq!(
        config.faces,
        [FaceConfig::new(
            FaceUri::parse("tcp://127.0.0.1:6363").expect("a URI")
        )]
    );
}

#[test]
fn the_sample_is_the_defaults_and_names_every_setting() {
    let sample = include_str!("../../../fwd.sample.toml");
    let said = read(sample).expect("the sample parses").node;
    let smallest = read("[[face]]\nlisten = \"unix:///run/nfd/nfd.sock\"\n")
        .expect("a configuration")
        .node;
    assert_eq!(format!("{said:?}"), format!("{smallest:?}"));
    // With its examples switched on too, every line is accepted and every setting is there.
    let on: String = sample
        .lines()
        .map(|l| format!("{}\n", l.strip_prefix("#: ").unwrap_or(l)))
        .collect();
    read(&on).expect("the sample parses with its examples");
    for s in SCHEMA.settings {
        let line = format!("{} =", s.key);
        assert!(
            on.lines().any(|l| l.starts_with(&line)),
            "{}.{} is not in the sample",
            s.section,
            s.key
        );
        if let Some(default) = s.default {
            let plain = format!("{} = {default}", s.key);
            let quoted = format!("{} = \"{default}\"", s.key);
            assert!(
                on.lines().any(|l| l == plain || l == quoted),
                "{}.{} is not {default}",
                s.section,
                s.key
            );
        }
        assert!(
            sample.contains(s.help),
            "{}.{} is not explained as in the table",
            s.section,
            s.key
        );
    }
}

#[test]
fn every_default_is_the_cores_own() {
    // Each setting given as its default changes nothing.
    for s in SCHEMA.settings {
        let Some(default) = s.default else { continue };
        let value = if default.parse::<u64>().is_ok() || default.parse::<bool>().is_ok() {
            default.to_owned()
        } else {
            format!("\"{default}\"")
        };
        let base = match s.key {
            "reconnect_min" | "reconnect_max" => "[[face]]\nconnect = \"tcp://127.0.0.1:6363\"\n",
            _ => SMALLEST,
        };
        let text = match s.section {
            "face" => format!("{base}{} = {value}\n", s.key),
            "route" => continue,
            section => format!("{base}[{section}]\n{} = {value}\n", s.key),
        };
        let given = read(&text).unwrap_or_else(|e| panic!("{e}")).node;
        let absent = read(base).expect("a configuration").node;
        assert_eq!(
            format!("{given:?}"),
            format!("{absent:?}"),
            "{}.{}",
            s.section,
            s.key
        );
    }
}

#[test]
fn refuses_what_it_does_not_know() {
    let said = refusal("[[face]]\nlisten = \"unix:///a\"\n[content_store]\ncapasity = \"1MiB\"\n");
    assert_eq!(
        said,
        "fwd.toml:4: unknown key `capasity` in [content_store]; did you mean `capacity`?"
    );
    let said = refusal("[[face]]\nlisten = \"unix:///a\"\n[contentstore]\n");
    assert_eq!(
        said,
        "fwd.toml:3: unknown key `contentstore` in the file; did you mean `content_store`?"
    );
    let said = refusal("[face]\nlisten = \"unix:///a\"\n");
    assert_eq!(
        said,
        "fwd.toml:1: `face` is not written as a table; write [[face]]"
    );
}

#[test]
fn refuses_wrong_values() {
    for (text, words) in [
        (
            "[pit]\ncapacity = 0\n",
            ["fwd.toml:4: pit.capacity", "from 1 to"],
        ),
        (
            "[pit]\ncapacity = \"many\"\n",
            ["pit.capacity", "whole number"],
        ),
        (
            "[content_store]\ncapacity = true\n",
            ["content_store.capacity", "size from"],
        ),
        (
            "[pit]\nmax_lifetime = \"4\"\n",
            ["pit.max_lifetime", "duration"],
        ),
        (
            "[[face]]\nlisten = \"gopher://x\"\n",
            ["fwd.toml:4: face.listen", "gopher"],
        ),
        ("[[face]]\n", ["neither listen nor connect", "give one"]),
        (
            "[[face]]\nlisten = \"unix:///b\"\nreconnect_min = \"1s\"\n",
            ["face.reconnect_min", "connect only"],
        ),
        (
            "[[route]]\nprefix = \"/a\"\nnexthop = \"tcp://b:1\"\n",
            ["route.nexthop", "add a [[face]]"],
        ),
        (
            "[[route]]\nnexthop = \"tcp://b:1\"\n",
            ["no prefix", "give `prefix`"],
        ),
        (
            "[[strategy]]\nprefix = \"/a\"\nname = \"fastest\"\n",
            ["strategy.name", "best-route"],
        ),
        (
            "[[strategy]]\nprefix = \"/a\"\nname = \"multicast\"\ngroup = 4\n",
            ["strategy.group", "learns nothing"],
        ),
        (
            "[[strategy]]\nprefix = \"/a/b\"\nname = \"self-learning\"\ngroup = 2\n",
            ["strategy.group", "has 2 components"],
        ),
        ("[log]\nlevel = \"x=loud\"\n", ["log.level", "trace"]),
        ("[pit\n", ["fwd.toml:3", "not TOML"]),
    ] {
        let said = refusal(&format!("{SMALLEST}{text}"));
        for word in words {
            assert!(said.contains(word), "{said}");
        }
    }
    assert!(refusal("").contains("no [[face]]"));
}

#[test]
fn reads_a_full_one() {
    let config = read(
        "[[face]]\nlisten = \"unix:///a\"\nmode = \"0660\"\nmax_faces = 7\nlend = \"anyone\"\n\
         [[face]]\nconnect = \"tcp://10.0.0.1:6363\"\njumbo = false\nreconnect_min = \"5ms\"\n\
         [[route]]\nprefix = \"/far\"\nnexthop = \"tcp://10.0.0.1:6363\"\ncost = 3\n\
         [[strategy]]\nprefix = \"/m\"\nname = \"multicast\"\n\
         [[strategy]]\nprefix = \"/h\"\nname = \"self-learning\"\ngroup = 4\n\
         [content_store]\ncapacity = 0\n[log]\nlevel = \"warn\"\n",
    )
    .expect("a configuration");
    assert_eq!(config.log, "warn");
    let node = config.node;
    assert_eq!(
        (node.listeners[0].unix_mode, node.listeners[0].max_faces),
        (Some(0o660), 7)
    );
    assert_eq!(node.faces[0].routes, [("/far".parse().expect("a name"), 3)]);
    assert!(!node.faces[0].link.jumbo);
    assert_eq!(node.listeners[0].link.lend, Lend::Anyone);
    assert_eq!(node.faces[0].link.lend, Lend::SameUser);
    assert_eq!(
        node.faces[0].reconnect,
        (Duration::from_millis(5), Duration::from_secs(10))
    );
    assert_eq!(node.forwarder.cs_capacity_bytes, 0);
    assert_eq!(node.strategies.len(), 2);
    assert_eq!(
        node.forwarder.learned_groups,
        [("/h".parse().expect("a name"), 4)]
    );
}

#[test]
fn faces_made_by_commands_have_settings() {
    let said = read(
        "[[face]]\nlisten = \"unix:///a\"\n[managed_faces]\nmtu = 1200\njumbo = false\nsend_queue = \"1MiB\"\n",
    )
    .expect("a configuration")
    .node
    .managed_faces;
    assert_eq!(
        (said.mtu, said.jumbo, said.send_queue_bytes),
        (Some(1200), false, 1 << 20)
    );
    let error = read("[[face]]\nlisten = \"unix:///a\"\n[managed_faces]\nring = \"100000\"\n")
        .err()
        .expect("no power of two");
    assert!(error.to_string().contains("managed_faces"), "{error}");
}

#[test]
fn what_waits_for_all_links_is_bounded() {
    let with = |text: &str| read(&format!("[[face]]\nlisten = \"unix:///a\"\n{text}"));
    let node = with("").expect("a configuration").node;
    assert_eq!(node.memory.send_queues_bytes, 256 << 20);
    let node = with("[send_queues]\ncapacity = \"1GiB\"\n")
        .expect("a configuration")
        .node;
    assert_eq!(node.memory.send_queues_bytes, 1 << 30);
    let error = with("[send_queues]\ncapacity = \"4KiB\"\n")
        .err()
        .expect("too little")
        .to_string();
    assert!(
        error.contains("capacity") && error.contains("1MiB"),
        "{error}"
    );
}

/// Writes a CA and a host's certificate, and a configuration beside them.
fn with_certificates(more: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    use crate::args::{CaArgs, HostArgs, JsonArg, KeygenCommand};
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().to_owned();
    let ca = CaArgs {
        directory: directory.clone(),
        name: String::from("Test"),
        days: 1,
        force: false,
        json: JsonArg::default(),
    };
    crate::keygen::run(&KeygenCommand::Ca(ca)).expect("a CA");
    let host = HostArgs {
        names: vec![String::from("router.test")],
        ca: directory.clone(),
        directory,
        days: 1,
        force: false,
        json: JsonArg::default(),
    };
    crate::keygen::run(&KeygenCommand::Host(host)).expect("a certificate");
    let path = folder.path().join("fwd.toml");
    let text = format!(
        "[tls]\ncertificate = \"router.test.crt\"\nkey = \"router.test.key\"\nca = \"ca.crt\"\n{more}"
    );
    std::fs::write(&path, text).expect("a file");
    (folder, path)
}

#[test]
fn certificates_are_read_with_the_configuration() {
    let (folder, path) = with_certificates(
        "[[face]]\nlisten = \"tls://0.0.0.0:6364\"\nhandshake_timeout = \"1s\"\n\
         [[face]]\nconnect = \"tls://192.0.2.1\"\nserver_name = \"core.test\"\n",
    );
    let node = load(&path).expect("a configuration").node;
    assert!(node.managed_faces.tls.is_some());
    assert_eq!(node.listeners[0].link.tls, node.managed_faces.tls);
    assert_eq!(node.faces[0].link.tls, node.managed_faces.tls);
    assert_eq!(node.listeners[0].handshake_timeout, Duration::from_secs(1));
    assert_eq!(node.faces[0].server_name.as_deref(), Some("core.test"));

    let (_folder, local) =
        with_certificates("[[face]]\nlisten = \"tls://0.0.0.0:6364\"\nscope = \"local\"\n");
    let said = load(&local).err().expect("refused").to_string();
    assert!(
        said.contains("face.scope") && said.contains("no rule would hold"),
        "{said}"
    );

    std::fs::remove_file(folder.path().join("router.test.key")).expect("removed");
    let said = load(&path).err().expect("refused");
    assert_eq!(said.exit, crate::error::Exit::Usage);
    assert!(
        said.to_string()
            .contains("router.test.key: there is no such file"),
        "{said}"
    );
}

#[test]
fn tls_is_given_whole_and_where_it_is_needed() {
    for (text, words) in [
        (
            "[[face]]\nlisten = \"tls://0.0.0.0\"\n",
            ["fwd.toml:2: face.listen", "add [tls]"],
        ),
        (
            "[[face]]\nlisten = \"unix:///a\"\n[tls]\nkey = \"k\"\nca = \"c\"\n",
            ["fwd.toml:3: tls", "give `certificate` too"],
        ),
        (
            "[[face]]\nconnect = \"tcp://b\"\nserver_name = \"b\"\n",
            ["fwd.toml:3: face.server_name", "tls:// only"],
        ),
        (
            "[[face]]\nlisten = \"unix:///a\"\nserver_name = \"b\"\n",
            ["face.server_name", "connect only"],
        ),
    ] {
        let said = refusal(text);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn who_may_announce_what() {
    let with = |text: &str| {
        let node = read(&format!("{SMALLEST}{text}"))
            .expect("a configuration")
            .node;
        (
            node.forwarder.prefix_rules.map(|rules| rules.to_vec()),
            node.forwarder.commands.localhop_rib.is_some(),
        )
    };
    assert_eq!(with(""), (None, false));
    let table = "[[authorize]]\ncertificate = \"*.rack1\"\nprefixes = [\"/hadoop\", \"/a/b\"]\n";
    let rule = PrefixRule {
        peer: "*.rack1".parse().expect("a pattern"),
        prefixes: vec![
            "/hadoop".parse().expect("a name"),
            "/a/b".parse().expect("a name"),
        ],
    };
    assert_eq!(with(table), (Some(vec![rule.clone()]), true));
    let off = format!("{table}[management]\nlocalhop = false\n");
    assert_eq!(with(&off), (Some(vec![rule]), false));
    for (text, words) in [
        (
            "certificate = \"a..b\"\nprefixes = [\"/a\"]\n",
            ["authorize.certificate", "no host name"],
        ),
        (
            "prefixes = [\"/a\"]\n",
            ["no certificate", "give `certificate`"],
        ),
        ("certificate = \"a\"\n", ["no prefixes", "give `prefixes`"]),
        (
            "certificate = \"a\"\nprefixes = [\"a\"]\n",
            ["authorize.prefixes", "`a`"],
        ),
        (
            "certificate = \"a\"\nprefixes = \"/a\"\n",
            ["authorize.prefixes", "list of names"],
        ),
    ] {
        let said = refusal(&format!("{SMALLEST}[[authorize]]\n{text}"));
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
