//! Settings of a program in one place: name, type, default, range and a line of help. The
//! configuration reader, the sample file's test and the docs page all come from such a table.

mod document;

use std::fmt::Write as _;

pub use document::{Document, Table};

/// What may stand behind a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number of bytes, as `256MiB` or a whole number.
    Size {
        /// Least and most, in bytes.
        min: u64,
        /// Most, in bytes.
        max: u64,
    },
    /// A whole number.
    Count {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A duration, as `500ms`; the range is in milliseconds.
    Time {
        /// Least, in milliseconds.
        min_ms: u64,
        /// Most, in milliseconds.
        max_ms: u64,
    },
    /// `true` or `false`.
    Switch,
    /// The address of a face, such as `tcp://host:6363`.
    FaceUri,
    /// An NDN name.
    Name,
    /// A strategy: a short word or its full name.
    Strategy,
    /// An IP address of this host.
    Address,
    /// An IP address of this host, and a port.
    Listen,
    /// The name of a host.
    HostName,
    /// The name of a network interface.
    Interface,
    /// A host and a port, or several with commas between.
    HostPorts,
    /// A folder of a Hadoop cluster, as `hdfs://namenode:8020/path`.
    Hdfs,
    /// A user's name.
    UserName,
    /// The name of a host in its certificate, of a domain's hosts, or of all.
    PeerPattern,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Permission bits of a file, in octal.
    Mode,
    /// Words for `tracing`'s filter.
    LogFilter,
    /// A file or folder; where it is relative, to the folder of the configuration file.
    Path,
    /// How to sign: digest, hmac:FILE, ecdsa:FILE or ed25519:FILE.
    Key,
    /// A list of names, none twice.
    Names,
    /// A list of ports.
    Ports {
        /// Most.
        most: usize,
    },
    /// The URL of a server, without a path.
    Server,
}

impl Kind {
    /// Whether a list stands behind the key.
    const fn is_list(self) -> bool {
        matches!(self, Kind::Names | Kind::Ports { .. })
    }
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The TOML table it stands in.
    pub section: &'static str,
    /// Its key there.
    pub key: &'static str,
    /// What may stand behind it.
    pub kind: Kind,
    /// Its value where it isn't given, as it would be written; `None` where there is none.
    pub default: Option<&'static str>,
    /// One line for the reader.
    pub help: &'static str,
}

/// One TOML table, or array of tables.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// The table's name.
    pub name: &'static str,
    /// Whether it is an array, written `[[name]]`.
    pub many: bool,
    /// What it is for.
    pub help: &'static str,
}

/// All that a program's configuration file may say.
#[derive(Debug)]
pub struct Schema {
    /// The sections in the order in which they are explained.
    pub sections: &'static [Section],
    /// The settings in the order in which they are explained.
    pub settings: &'static [Setting],
}

impl Schema {
    /// The setting of this section and key.
    pub fn find(&self, section: &str, key: &str) -> Option<&'static Setting> {
        self.settings
            .iter()
            .find(|s| s.section == section && s.key == key)
    }

    /// The section of this name.
    pub fn find_section(&self, name: &str) -> Option<&'static Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// The keys that a section knows.
    pub fn keys_of(
        &self,
        section: &'static str,
    ) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.settings
            .iter()
            .filter(move |s| s.section == section)
            .map(|s| s.key)
    }
}

/// The candidate that is nearest to what was typed, if any is near at all.
pub fn nearest<'a>(typed: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|c| (strsim::jaro_winkler(typed, c), c))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

impl Kind {
    /// The type and the range in words, for the docs page and for errors.
    pub fn describe(self) -> String {
        match self {
            Kind::Size { min, max } => {
                format!("size from {} to {}", whole_size(min), whole_size(max))
            }
            Kind::Count { min, max } => format!("whole number from {min} to {max}"),
            Kind::Time { min_ms, max_ms } => {
                let show = |ms| crate::units::show_duration(std::time::Duration::from_millis(ms));
                format!("duration from {} to {}", show(min_ms), show(max_ms))
            }
            Kind::Switch => String::from("true or false"),
            Kind::FaceUri => String::from("face URI"),
            Kind::Name => String::from("NDN name"),
            Kind::Strategy => String::from("strategy"),
            Kind::Address => String::from("IP address"),
            Kind::Listen => String::from("IP address and port"),
            Kind::HostName => String::from("host name"),
            Kind::Interface => String::from("interface name"),
            Kind::HostPorts => String::from("host and port, or several with commas between"),
            Kind::Hdfs => String::from("hdfs://namenode:port/path"),
            Kind::UserName => String::from("user name"),
            Kind::PeerPattern => String::from("host name, *.domain or *"),
            Kind::Choice(words) => words.join(" or "),
            Kind::Mode => String::from("permission bits in octal"),
            Kind::LogFilter => String::from("log filter"),
            Kind::Path => String::from("path"),
            Kind::Key => String::from("digest, hmac:FILE, ecdsa:FILE or ed25519:FILE"),
            Kind::Names => String::from("list of names"),
            Kind::Ports { most } => format!("list of 1 to {most} ports"),
            Kind::Server => String::from("http://host:port or https://host:port"),
        }
    }
}

/// A size in the largest binary unit that holds it whole.
fn whole_size(bytes: u64) -> String {
    for (suffix, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes.trailing_zeros() >= shift {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    format!("{bytes}")
}

impl Schema {
    /// The docs page of the settings of `trunkline <command> run`.
    pub fn markdown(&self, command: &str) -> String {
        let mut page = format!(
            "# Settings of `trunkline {command} run`\n\n\
         Made by `trunkline {command} settings --markdown`; the sample `cli/{command}.sample.toml` has them all.\n\
         Unknown keys are refused. Sizes are written `8800`, `64KiB` or `256MiB`, durations `500ms` or `4s`.\n",
        );
        for section in self.sections {
            let heading = if section.many {
                format!("[[{}]]", section.name)
            } else {
                format!("[{}]", section.name)
            };
            let _ = write!(page, "\n## `{heading}`\n{}\n\n", section.help);
            page.push_str("| key | type | default | what it does |\n| --- | --- | --- | --- |\n");
            for setting in self.settings.iter().filter(|s| s.section == section.name) {
                let default = setting
                    .default
                    .map_or(String::from("none"), |d| format!("`{d}`"));
                let _ = writeln!(
                    page,
                    "| `{}` | {} | {default} | {} |",
                    setting.key,
                    setting.kind.describe(),
                    setting.help
                );
            }
        }
        page
    }

    /// The settings as lines of text.
    pub fn text(&self) -> String {
        let mut lines = String::new();
        for s in self.settings {
            let default = s.default.unwrap_or("-");
            let _ = writeln!(
                lines,
                "{}.{} ({}; default {default})\n    {}",
                s.section,
                s.key,
                s.kind.describe(),
                s.help
            );
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas() -> [(&'static str, &'static Schema); 3] {
        [
            ("fwd", &crate::fwd::SCHEMA),
            ("mirror", &crate::mirror::SCHEMA),
            ("repo", &crate::repo::SCHEMA),
        ]
    }

    #[test]
    fn every_setting_has_its_section_and_stands_once() {
        for (_, schema) in schemas() {
            for (i, s) in schema.settings.iter().enumerate() {
                assert!(schema.find_section(s.section).is_some(), "{}", s.section);
                assert!(
                    !schema.settings[..i]
                        .iter()
                        .any(|o| o.section == s.section && o.key == s.key),
                    "{}",
                    s.key
                );
            }
        }
    }

    #[test]
    fn nearest_finds_a_slip_of_the_pen() {
        let schema = &crate::fwd::SCHEMA;
        assert_eq!(
            nearest("capasity", schema.keys_of("content_store")),
            Some("capacity")
        );
        assert_eq!(
            nearest("contentstore", schema.sections.iter().map(|s| s.name)),
            Some("content_store")
        );
        assert_eq!(nearest("zzz", schema.keys_of("pit")), None);
    }

    #[test]
    fn docs_pages_are_the_tables() {
        for (command, schema) in schemas() {
            let page = format!("docs/settings-{command}.md");
            let path = format!("{}/../{page}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).expect("the page");
            assert!(
                text == schema.markdown(command),
                "{page} is stale: trunkline {command} settings --markdown > {page}"
            );
        }
    }
}
