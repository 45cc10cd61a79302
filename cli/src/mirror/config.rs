//! The configuration of an agent, at a host or at a bridge: from a TOML file to what it is started with. A file may have
//! both; it is checked whole, whichever is started.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::system::uname;
use trunkline_mirror::AgentOptions;
use trunkline_mirror::controller::{Place, certificates, is_in_clear};
use trunkline_mirror::switch::SwitchOptions;

use super::settings::SCHEMA;
use crate::error::{CliError, Exit};
use crate::settings::{Document, Table};

const MAX_TOKEN_BYTES: usize = 4096;

/// All that a configuration file says of the agent at a host.
#[derive(Debug)]
pub struct MirrorConfig {
    /// How the agent is run; without the controller's secrets.
    pub agent: AgentOptions,
    secrets: Secrets,
    /// The filter of the log.
    pub log: String,
}

/// All that it says of the agent at a bridge.
#[derive(Debug)]
pub struct SwitchConfig {
    /// How the agent is run; without the controller's secrets.
    pub switch: SwitchOptions,
    secrets: Secrets,
    /// The filter of the log.
    pub log: String,
}

/// Files that are read when an agent is started.
#[derive(Debug)]
struct Secrets {
    /// The table that names them.
    table: &'static str,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

impl MirrorConfig {
    /// Reads the file at `path`, and no other.
    ///
    /// # Errors
    /// A usage error that names file, line, key and what would be right.
    pub fn load(path: &Path) -> Result<Self, CliError> {
        Self::parse(path, &read(path, "[agent] interfaces = [\"eth0\"]")?)
    }

    /// Reads `text`, which came from `path`.
    ///
    /// # Errors
    /// As [`MirrorConfig::load`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, CliError> {
        let document = Document::parse(path, text, &SCHEMA)?;
        if document.table("switch").is_given() {
            SwitchConfig::of(&document)?;
        }
        Self::of(path, &document)
    }

    fn of(path: &Path, document: &Document<'_>) -> Result<Self, CliError> {
        let (agent, http) = (document.table("agent"), document.table("http"));
        let interfaces = needed(&agent, "interfaces", agent.names("interfaces")?)?;
        if interfaces.is_empty() {
            return Err(agent
                .error_at("interfaces", "names no interface")
                .or("name those by which DataNodes are reached, as [\"eth0\"]"));
        }
        Ok(Self {
            agent: AgentOptions {
                pin: needed(&agent, "pin", agent.path("pin")?)?,
                interfaces,
                data_ports: needed(&agent, "data_ports", agent.ports("data_ports")?)?,
                repeat: needed(&agent, "repeat", agent.time("repeat")?)?,
                forget: needed(&agent, "forget", agent.time("forget")?)?,
                name: agent.host_name("name")?.unwrap_or_else(host),
                config: std::path::absolute(path).ok(),
                controller: controller(&agent)?,
                http: listen(&http)?,
            },
            secrets: Secrets::of("agent", &agent)?,
            log: filter(document)?,
        })
    }

    /// Reads the files that are named.
    ///
    /// # Errors
    /// One can't be read, has nothing in it, or is not kept secret.
    pub fn with_secrets(mut self) -> Result<Self, CliError> {
        self.secrets.read(&mut self.agent.controller)?;
        Ok(self)
    }

    /// Whether the token goes to another host by plain http.
    pub fn is_token_in_clear(&self) -> bool {
        self.secrets.are_in_clear(&self.agent.controller)
    }
}

impl SwitchConfig {
    /// Reads the file at `path`, and no other.
    ///
    /// # Errors
    /// As [`MirrorConfig::load`].
    pub fn load(path: &Path) -> Result<Self, CliError> {
        Self::parse(path, &read(path, "[switch] bridge = \"br0\"")?)
    }

    /// Reads `text`, which came from `path`.
    ///
    /// # Errors
    /// As [`MirrorConfig::load`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, CliError> {
        let document = Document::parse(path, text, &SCHEMA)?;
        if document.table("agent").is_given() {
            MirrorConfig::of(path, &document)?;
        }
        Self::of(&document)
    }

    fn of(document: &Document<'_>) -> Result<Self, CliError> {
        let switch = document.table("switch");
        Ok(Self {
            switch: SwitchOptions {
                pin: needed(&switch, "pin", switch.path("pin")?)?,
                bridge: needed(&switch, "bridge", switch.interface("bridge")?)?,
                name: switch.host_name("name")?.unwrap_or_else(host),
                controller: controller(&switch)?,
                http: listen(&switch)?,
            },
            secrets: Secrets::of("switch", &switch)?,
            log: filter(document)?,
        })
    }

    /// Reads the files that are named.
    ///
    /// # Errors
    /// As [`MirrorConfig::with_secrets`].
    pub fn with_secrets(mut self) -> Result<Self, CliError> {
        self.secrets.read(&mut self.switch.controller)?;
        Ok(self)
    }

    /// Whether the token goes to another host by plain http.
    pub fn is_token_in_clear(&self) -> bool {
        self.secrets.are_in_clear(&self.switch.controller)
    }
}

impl Secrets {
    fn of(name: &'static str, table: &Table<'_>) -> Result<Self, CliError> {
        Ok(Self {
            table: name,
            token_file: table.path("token_file")?,
            ca_file: table.path("ca_file")?,
        })
    }

    /// Puts what the files hold where it belongs.
    fn read(&self, controller: &mut Place) -> Result<(), CliError> {
        let table = self.table;
        if let Some(path) = &self.ca_file {
            let setting = format!("{table}.ca_file");
            if !controller.url.starts_with("https:") {
                return Err(CliError::usage(
                    &setting,
                    format!("{table}.controller is not asked by TLS"),
                )
                .or(format!("write https://, or leave {setting} out")));
            }
            let pem = std::fs::read(path).map_err(|e| CliError::file(path, &e))?;
            if certificates(&pem).is_empty() {
                return Err(CliError::usage(
                    &setting,
                    format!("{} has no certificate", path.display()),
                )
                .or("name a PEM file with BEGIN CERTIFICATE in it"));
            }
            controller.authorities = Some(pem);
        }
        if let Some(path) = &self.token_file {
            controller.token = Some(token(&format!("{table}.token_file"), path)?);
        }
        Ok(())
    }

    fn are_in_clear(&self, controller: &Place) -> bool {
        self.token_file.is_some() && is_in_clear(&controller.url)
    }
}

/// `least`: what the smallest file says.
fn read(path: &Path, least: &str) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|e| {
        let error = CliError::file(path, &e);
        CliError {
            exit: Exit::Usage,
            ..error
        }
        .or(format!(
            "write one with {least}; cli/mirror.sample.toml explains every setting"
        ))
    })
}

fn host() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

fn controller(table: &Table<'_>) -> Result<Place, CliError> {
    Ok(Place {
        url: needed(table, "controller", table.server("controller")?)?,
        ..Place::default()
    })
}

fn listen(table: &Table<'_>) -> Result<Option<SocketAddr>, CliError> {
    let listen = table.listen("listen")?;
    if listen.is_some_and(|at| !at.ip().is_loopback()) {
        return Err(table
            .error_at("listen", "is no loopback address")
            .or("write 127.0.0.1 or [::1]: whoever reaches it reads which hosts write"));
    }
    Ok(listen)
}

fn filter(document: &Document<'_>) -> Result<String, CliError> {
    let log = document.table("log");
    let filter = needed(&log, "level", log.text("level")?)?;
    if let Err(error) = filter.parse::<tracing_subscriber::filter::Targets>() {
        return Err(log
            .error_at("level", error)
            .or("write error, warn, info, debug or trace"));
    }
    Ok(filter)
}

fn token(setting: &str, path: &Path) -> Result<String, CliError> {
    let about = std::fs::metadata(path).map_err(|e| CliError::file(path, &e))?;
    if about.mode() & 0o077 != 0 {
        return Err(CliError::usage(
            setting,
            format!("others may read or write {}", path.display()),
        )
        .or(format!("chmod 600 {}", path.display())));
    }
    let text = std::fs::read(path).map_err(|e| CliError::file(path, &e))?;
    let token = text.trim_ascii();
    if token.is_empty() || token.len() > MAX_TOKEN_BYTES || !token.iter().all(u8::is_ascii_graphic)
    {
        return Err(
            CliError::usage(setting, format!("{} has no token", path.display()))
                .or("copy the controller's"),
        );
    }
    Ok(String::from_utf8_lossy(token).into_owned())
}

fn needed<T>(table: &Table<'_>, key: &str, value: Option<T>) -> Result<T, CliError> {
    value.ok_or_else(|| {
        table.error(format!("no `{key}` is given")).or(format!(
            "add `{key} = …`; cli/mirror.sample.toml explains it"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    fn read(text: &str) -> Result<MirrorConfig, String> {
        MirrorConfig::parse(Path::new("/etc/mirror.toml"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn the_smallest_has_the_defaults() {
        let config = read("[agent]\ninterfaces = [\"eth0\"]\n").expect("right");
        assert_eq!(config.agent.interfaces, ["eth0"]);
        assert_eq!(config.agent.data_ports, [9866]);
        assert_eq!(config.agent.forget, Duration::from_secs(60));
        assert_eq!(config.agent.pin, Path::new(trunkline_mirror::pins::DEFAULT));
        assert_eq!(config.agent.controller.url, "http://127.0.0.1:8181");
        assert!(!config.agent.name.is_empty() && config.agent.http.is_none());
    }

    #[test]
    fn lists_are_read() {
        let config = read(
            "[agent]\ninterfaces = [\"eth0\", \"eth1.7\"]\ndata_ports = [9866, 1_019]\n[http]\nlisten = \"[::1]:8182\"\n",
        )
        .expect("right");
        assert_eq!(config.agent.interfaces, ["eth0", "eth1.7"]);
        assert_eq!(config.agent.data_ports, [9866, 1019]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |line: &str| format!("[agent]\ninterfaces = [\"eth0\"]\n{line}\n");
        for (text, said) in [
            (String::new(), "no `interfaces`"),
            (
                "[agent]\ninterfaces = []\n".into(),
                "mirror.toml:2: agent.interfaces: names no interface",
            ),
            (
                "[agent]\ninterfaces = \"eth0\"\n".into(),
                "mirror.toml:2: agent.interfaces: a string stands here",
            ),
            (
                "[agent]\ninterfaces = [\"a\", \"a\"]\n".into(),
                "agent.interfaces",
            ),
            ("[agent]\ninterfaces = [[1]]\n".into(), "agent.interfaces"),
            (with("data_ports = [0]"), "mirror.toml:3: agent.data_ports"),
            (with("data_ports = [1, 2, 3, 4, 5]"), "list of 1 to 4 ports"),
            (with("controller = \"10.0.0.1:8181\""), "agent.controller"),
            (with("controler = \"x\""), "did you mean `controller`"),
            (with("forget = \"1ms\""), "agent.forget"),
            (
                with("[http]\nlisten = \"0.0.0.0:1\""),
                "mirror.toml:4: http.listen: is no loopback address",
            ),
            (with("[log]\nlevel = \"info,x=loud\""), "log.level"),
        ] {
            let Err(error) = read(&text) else {
                panic!("accepted: {text}")
            };
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    fn read_switch(text: &str) -> Result<SwitchConfig, String> {
        SwitchConfig::parse(Path::new("/etc/mirror.toml"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn a_bridge_s_smallest_has_the_defaults() {
        let config = read_switch("[switch]\nbridge = \"br0\"\n").expect("right");
        assert_eq!(config.switch.bridge, "br0");
        let pin = Path::new(trunkline_mirror::switch::DEFAULT_PIN);
        assert_eq!(config.switch.pin, pin);
        assert_ne!(pin, Path::new(trunkline_mirror::pins::DEFAULT));
        assert!(!config.switch.name.is_empty() && config.switch.http.is_none());
    }

    #[test]
    fn a_file_is_checked_whole_whichever_agent_is_started() {
        let both = "[agent]\ninterfaces = [\"eth0\"]\n[switch]\nbridge = \"br0\"\n";
        read(both).expect("right");
        read_switch(both).expect("right");
        let wrong = "[agent]\ninterfaces = []\n[switch]\nbridge = \"br0\"\n";
        let error = read_switch(wrong).expect_err("the host's table is wrong");
        assert!(
            error.contains("agent.interfaces: names no interface"),
            "{error}"
        );
        let wrong = "[agent]\ninterfaces = [\"eth0\"]\n[switch]\nbridge = \"a/b\"\n";
        let error = read(wrong).expect_err("the bridge's table is wrong");
        assert!(error.contains("mirror.toml:4: switch.bridge"), "{error}");
    }

    #[test]
    fn what_is_wrong_of_a_bridge_is_named() {
        let with = |line: &str| format!("[switch]\nbridge = \"br0\"\n{line}\n");
        for (text, said) in [
            (String::new(), "no `bridge`"),
            ("[switch]\nbridge = \"\"\n".into(), "interface name"),
            (
                "[switch]\nbridge = \"sixteen-letters-\"\n".into(),
                "switch.bridge",
            ),
            (
                with("listen = \"0.0.0.0:1\""),
                "switch.listen: is no loopback address",
            ),
            (
                with("interfaces = [\"eth0\"]"),
                "unknown key `interfaces` in [switch]",
            ),
            (with("controller = \"br0\""), "switch.controller"),
        ] {
            let Err(error) = read_switch(&text) else {
                panic!("accepted: {text}")
            };
            assert!(error.contains(said), "{text}: {error}");
        }
        let named = with("ca_file = \"/nowhere\"");
        let error = read_switch(&named)
            .expect("right")
            .with_secrets()
            .expect_err("no TLS");
        assert!(
            error
                .to_string()
                .contains("switch.controller is not asked by TLS"),
            "{error}"
        );
    }

    #[test]
    fn a_token_is_kept_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        std::fs::write(&file, "right-right-right-right\n").expect("a file");
        let load = |mode| {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("a mode");
            let text = format!(
                "[agent]\ninterfaces = [\"eth0\"]\ncontroller = \"http://10.0.0.1:8181\"\ntoken_file = \"{}\"\n",
                file.display()
            );
            let config = read(&text).expect("right");
            assert!(config.is_token_in_clear());
            config.with_secrets().map_err(|e| e.to_string())
        };
        let config = load(0o600).expect("a token");
        assert_eq!(
            config.agent.controller.token.as_deref(),
            Some("right-right-right-right")
        );
        let error = load(0o644).expect_err("open to others");
        assert!(
            error.contains("others may read") && error.contains("chmod 600"),
            "{error}"
        );
        std::fs::write(&file, "a\nb").expect("a file");
        assert!(load(0o600).expect_err("none").contains("has no token"));
    }

    /// What a file says under a heading.
    fn table<'t>(text: &'t str, name: &str) -> &'t str {
        let (_, from) = text.split_once(&format!("\n[{name}]\n")).expect(name);
        from.split_once("\n[").map_or(from, |(table, _)| table)
    }

    #[test]
    fn the_sample_is_accepted_and_names_every_setting() {
        let sample = include_str!("../../mirror.sample.toml");
        read(sample).expect("the sample");
        let on: String = sample
            .lines()
            .map(|l| format!("{}\n", l.strip_prefix("#: ").unwrap_or(l)))
            .collect();
        read(&on).expect("the sample with its examples");
        for setting in SCHEMA.settings {
            assert!(
                table(&on, setting.section)
                    .lines()
                    .any(|l| l.starts_with(&format!("{} =", setting.key))),
                "{}.{}",
                setting.section,
                setting.key
            );
        }
    }
}
