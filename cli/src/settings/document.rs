//! A TOML file held against the settings table: unknown keys, wrong types and values out of range
//! are refused with the file, the line, the key and what would be right.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ndn_forwarder::PeerPattern;
use ndn_io::FaceUri;
use ndn_packet::Name;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use trunkline_mirror::controller::is_server;
use trunkline_store::Location;

use super::{Kind, Schema, Setting, nearest};
use crate::error::CliError;
use crate::keys::SignSpec;
use crate::units::{parse_duration, parse_size};

/// A parsed file whose keys all exist.
pub struct Document<'a> {
    path: &'a Path,
    text: &'a str,
    root: DeTable<'a>,
    schema: &'static Schema,
}

/// One table of the file.
#[derive(Clone, Copy)]
pub struct Table<'d> {
    document: &'d Document<'d>,
    section: &'static str,
    /// `None` where the file does not have the section.
    values: Option<&'d DeTable<'d>>,
    /// Where the table begins, in bytes from the file's start.
    at: usize,
}

impl<'a> Document<'a> {
    /// Parses `text`, read from `path`, and refuses keys that the settings table does not have.
    ///
    /// # Errors
    /// A usage error that names the line.
    pub fn parse(path: &'a Path, text: &'a str, schema: &'static Schema) -> Result<Self, CliError> {
        let root = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            CliError::usage(place(path, text, at), format!("not TOML: {}", e.message()))
        })?;
        let document = Document {
            path,
            text,
            root: root.into_inner(),
            schema,
        };
        document.check_keys()?;
        Ok(document)
    }

    fn check_keys(&self) -> Result<(), CliError> {
        for (name, value) in &self.root {
            let at = name.span().start;
            let name: &str = name.get_ref();
            let Some(section) = self.schema.find_section(name) else {
                return Err(self.unknown(
                    at,
                    name,
                    "the file",
                    self.schema.sections.iter().map(|s| s.name),
                ));
            };
            let tables: Vec<&DeTable<'_>> = match (section.many, value.get_ref()) {
                (false, DeValue::Table(table)) => vec![table],
                (true, DeValue::Array(items)) if items.iter().all(|i| i.get_ref().is_table()) => {
                    items
                        .iter()
                        .filter_map(|i| i.get_ref().as_table())
                        .collect()
                }
                (many, _) => {
                    let form = if many {
                        format!("[[{name}]]")
                    } else {
                        format!("[{name}]")
                    };
                    return Err(CliError::usage(
                        self.place(at),
                        format!("`{name}` is not written as a table"),
                    )
                    .or(format!("write {form}")));
                }
            };
            for key in tables.iter().flat_map(|t| t.keys()) {
                if self.schema.find(section.name, key.get_ref()).is_none() {
                    let place = if section.many {
                        format!("[[{name}]]")
                    } else {
                        format!("[{name}]")
                    };
                    return Err(self.unknown(
                        key.span().start,
                        key.get_ref(),
                        &place,
                        self.schema.keys_of(section.name),
                    ));
                }
            }
        }
        Ok(())
    }

    fn unknown(
        &self,
        at: usize,
        key: &str,
        place: &str,
        known: impl Iterator<Item = &'static str> + Clone,
    ) -> CliError {
        let error = CliError::usage(self.place(at), format!("unknown key `{key}` in {place}"));
        match nearest(key, known.clone()) {
            Some(near) => error.or(format!("did you mean `{near}`?")),
            None => error.or(format!(
                "known are {}",
                known.collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// The section's table, which need not be in the file.
    pub fn table(&'a self, section: &'static str) -> Table<'a> {
        let found = self.root.get(section);
        Table {
            document: self,
            section,
            values: found.and_then(|v| v.get_ref().as_table()),
            at: found.map_or(0, |v| v.span().start),
        }
    }

    /// The tables of an array section, in the file's order.
    pub fn tables(&'a self, section: &'static str) -> Vec<Table<'a>> {
        let items = self.root.get(section).and_then(|v| v.get_ref().as_array());
        items
            .into_iter()
            .flat_map(|items| items.iter())
            .map(|item| Table {
                document: self,
                section,
                values: item.get_ref().as_table(),
                at: item.span().start,
            })
            .collect()
    }

    /// `file:line` for a place in the text.
    fn place(&self, at: usize) -> String {
        place(self.path, self.text, at)
    }
}

fn place(path: &Path, text: &str, at: usize) -> String {
    let line = text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
        + 1;
    format!("{}:{line}", path.display())
}

/// What a key holds, as written: a string, or a bare number or switch turned into one.
struct Written {
    text: String,
    at: usize,
}

impl<'d> Table<'d> {
    /// An error about this table as a whole.
    pub fn error(&self, cause: impl std::fmt::Display) -> CliError {
        CliError::usage(
            format!("{}: {}", self.document.place(self.at), self.section),
            cause,
        )
    }

    /// An error about one key of it.
    pub fn error_at(&self, key: &str, cause: impl std::fmt::Display) -> CliError {
        let at = self
            .values
            .and_then(|v| v.get(key))
            .map_or(self.at, |v| v.span().start);
        CliError::usage(
            format!("{}: {}.{key}", self.document.place(at), self.section),
            cause,
        )
    }

    /// Whether the file has this table.
    pub fn is_given(&self) -> bool {
        self.values.is_some()
    }

    /// Whether the file gives this key.
    pub fn has(&self, key: &str) -> bool {
        self.values.is_some_and(|v| v.contains_key(key))
    }

    /// A size in bytes.
    pub fn size(&self, key: &str) -> Result<Option<u64>, CliError> {
        self.read(key, |kind, text| {
            let Kind::Size { min, max } = kind else {
                return Err(wrong_kind(key));
            };
            parse_size(text)
                .ok()
                .filter(|n| (min..=max).contains(n))
                .ok_or_else(String::new)
        })
    }

    /// A whole number.
    pub fn count(&self, key: &str) -> Result<Option<u64>, CliError> {
        self.read(key, |kind, text| {
            let Kind::Count { min, max } = kind else {
                return Err(wrong_kind(key));
            };
            text.parse()
                .ok()
                .filter(|n| (min..=max).contains(n))
                .ok_or_else(String::new)
        })
    }

    /// A duration.
    pub fn time(&self, key: &str) -> Result<Option<Duration>, CliError> {
        self.read(key, |kind, text| {
            let Kind::Time { min_ms, max_ms } = kind else {
                return Err(wrong_kind(key));
            };
            let range = Duration::from_millis(min_ms)..=Duration::from_millis(max_ms);
            parse_duration(text)
                .ok()
                .filter(|t| range.contains(t))
                .ok_or_else(String::new)
        })
    }

    /// `true` or `false`.
    pub fn switch(&self, key: &str) -> Result<Option<bool>, CliError> {
        self.read(key, |_, text| text.parse().map_err(|_| String::new()))
    }

    /// One of the setting's words.
    pub fn choice(&self, key: &str) -> Result<Option<&'static str>, CliError> {
        self.read(key, |kind, text| {
            let Kind::Choice(words) = kind else {
                return Err(wrong_kind(key));
            };
            words
                .iter()
                .find(|word| **word == text)
                .copied()
                .ok_or_else(String::new)
        })
    }

    /// Text that is checked elsewhere.
    pub fn text(&self, key: &str) -> Result<Option<String>, CliError> {
        self.read(key, |_, text| Ok(text.to_owned()))
    }

    /// A face's address.
    pub fn face_uri(&self, key: &str) -> Result<Option<FaceUri>, CliError> {
        self.read(key, |_, text| {
            FaceUri::parse(text).map_err(|e| e.to_string())
        })
    }

    /// A name.
    pub fn name(&self, key: &str) -> Result<Option<Name>, CliError> {
        self.read(key, |_, text| {
            text.parse::<Name>().map_err(|e| e.to_string())
        })
    }

    /// A file or folder. A relative path starts at the configuration file's folder.
    pub fn path(&self, key: &str) -> Result<Option<PathBuf>, CliError> {
        let text = self.read(key, |_, text| match text {
            "" => Err(String::from("names no file")),
            text => Ok(text.to_owned()),
        })?;
        Ok(text.map(|text| self.beside(text)))
    }

    /// How to sign; a relative path starts at the configuration file's folder.
    pub fn key(&self, key: &str) -> Result<Option<SignSpec>, CliError> {
        let spec = self.read(key, |_, text| text.parse::<SignSpec>())?;
        Ok(spec.map(|spec| spec.at(|file| self.beside(file))))
    }

    fn beside(&self, path: impl AsRef<Path>) -> PathBuf {
        let folder = self.document.path.parent().unwrap_or(Path::new(""));
        folder.join(path)
    }

    /// An address of this host.
    pub fn address(&self, key: &str) -> Result<Option<IpAddr>, CliError> {
        self.read(key, |_, text| text.parse().map_err(|_| String::new()))
    }

    /// An address of this host, and a port.
    pub fn listen(&self, key: &str) -> Result<Option<SocketAddr>, CliError> {
        self.read(key, |_, text| text.parse().map_err(|_| String::new()))
    }

    /// The name of a host, without port.
    pub fn host_name(&self, key: &str) -> Result<Option<String>, CliError> {
        self.read(key, |_, text| {
            let is_name = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
            match !text.is_empty() && text.bytes().all(is_name) {
                true => Ok(text.to_owned()),
                false => Err(String::new()),
            }
        })
    }

    /// The name of a network interface.
    pub fn interface(&self, key: &str) -> Result<Option<String>, CliError> {
        const MOST: usize = 15; // IFNAMSIZ, with its end
        self.read(key, |_, text| {
            let is_part = |c: char| !c.is_whitespace() && !c.is_control() && !"/:".contains(c);
            match (1..=MOST).contains(&text.len()) && text.chars().all(is_part) {
                true => Ok(text.to_owned()),
                false => Err(String::new()),
            }
        })
    }

    /// Hosts, each with a port.
    pub fn host_ports(&self, key: &str) -> Result<Option<Vec<String>>, CliError> {
        self.read(key, |_, text| {
            let is_right = |one: &str| {
                one.rsplit_once(':').is_some_and(|(host, port)| {
                    let is_host = |c: u8| c.is_ascii_alphanumeric() || b"-_.:[]".contains(&c);
                    !host.is_empty() && host.bytes().all(is_host) && port.parse::<u16>().is_ok()
                })
            };
            let all: Vec<String> = text.split(',').map(|one| one.trim().to_owned()).collect();
            match all.iter().all(|one| is_right(one)) {
                true => Ok(all),
                false => Err(String::new()),
            }
        })
    }

    /// Names, none twice.
    pub fn names(&self, key: &str) -> Result<Option<Vec<String>>, CliError> {
        self.read(key, |_, text| {
            let names = items(text);
            let is_name = |name: &String| !name.is_empty() && name.chars().all(|c| !c.is_control());
            let twice = |at: usize| names[..at].contains(&names[at]);
            match names.iter().all(is_name) && !(0..names.len()).any(twice) {
                true => Ok(names),
                false => Err(String::new()),
            }
        })
    }

    /// Ports.
    pub fn ports(&self, key: &str) -> Result<Option<Vec<u16>>, CliError> {
        self.read(key, |kind, text| {
            let Kind::Ports { most } = kind else {
                return Err(wrong_kind(key));
            };
            let ports = items(text)
                .iter()
                .map(|port| port.parse::<u16>().ok().filter(|port| *port != 0))
                .collect::<Option<Vec<_>>>();
            ports
                .filter(|ports| (1..=most).contains(&ports.len()))
                .ok_or_else(String::new)
        })
    }

    /// The URL of a server.
    pub fn server(&self, key: &str) -> Result<Option<String>, CliError> {
        self.read(key, |_, text| {
            let text = text.trim_end_matches('/');
            is_server(text)
                .then(|| text.to_owned())
                .ok_or_else(String::new)
        })
    }

    /// A user's name.
    pub fn user_name(&self, key: &str) -> Result<Option<String>, CliError> {
        self.read(key, |_, text| {
            let is_right =
                !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control());
            is_right.then(|| text.to_owned()).ok_or_else(String::new)
        })
    }

    /// Whom a rule is about.
    pub fn peer_pattern(&self, key: &str) -> Result<Option<PeerPattern>, CliError> {
        self.read(key, |_, text| {
            let said = |e: ndn_forwarder::PeerPatternError| format!("`{text}` is {e}");
            text.parse().map_err(said)
        })
    }

    /// A folder of a Hadoop cluster.
    pub fn hdfs(&self, key: &str) -> Result<Option<Location>, CliError> {
        self.read(key, |_, text| text.parse::<Location>())
    }

    /// Permission bits.
    pub fn mode(&self, key: &str) -> Result<Option<u32>, CliError> {
        self.read(key, |_, text| {
            u32::from_str_radix(text, 8)
                .ok()
                .filter(|m| *m <= 0o777)
                .ok_or_else(String::new)
        })
    }

    /// Reads a key by the settings table: its value in the file, else its default. The parser
    /// returns an empty reason where the setting's type and range say all.
    fn read<T>(
        &self,
        key: &str,
        parse: impl Fn(Kind, &str) -> Result<T, String>,
    ) -> Result<Option<T>, CliError> {
        let Some(setting) = self.document.schema.find(self.section, key) else {
            return Err(self.error_at(key, "is no setting"));
        };
        let Some(written) = self.written(setting)? else {
            let Some(default) = setting.default else {
                return Ok(None);
            };
            return parse(setting.kind, default)
                .map(Some)
                .map_err(|e| self.error_at(key, e));
        };
        parse(setting.kind, &written.text)
            .map(Some)
            .map_err(|reason| {
                let thing = format!(
                    "{}: {}.{key}",
                    self.document.place(written.at),
                    self.section
                );
                let cause = match reason.as_str() {
                    "" => format!("`{}` is not right", written.text),
                    reason => reason.to_owned(),
                };
                CliError::usage(thing, cause).or(self.example(setting))
            })
    }

    fn example(&self, setting: &Setting) -> String {
        let default = setting
            .default
            .map_or(String::new(), |d| format!(" (default {d})"));
        format!("give a {}{default}", setting.kind.describe())
    }

    fn written(&self, setting: &Setting) -> Result<Option<Written>, CliError> {
        let Some(value) = self.values.and_then(|v| v.get(setting.key)) else {
            return Ok(None);
        };
        let text = match (value.get_ref(), setting.kind) {
            (DeValue::Integer(n), Kind::Size { .. } | Kind::Count { .. }) if n.radix() == 10 => {
                n.as_str().replace('_', "")
            }
            (DeValue::Boolean(b), Kind::Switch) => b.to_string(),
            (DeValue::Array(values), kind) if kind.is_list() => {
                let texts = values.iter().map(|value| match value.get_ref() {
                    DeValue::String(s) if !s.contains(BETWEEN) => Some(s.to_string()),
                    DeValue::Integer(n) if n.radix() == 10 => Some(n.as_str().replace('_', "")),
                    _ => None,
                });
                let texts = texts.collect::<Option<Vec<_>>>();
                texts
                    .ok_or_else(|| self.wrong_type(setting, value))?
                    .join(BETWEEN)
            }
            (DeValue::String(_), kind) if kind.is_list() => {
                return Err(self.wrong_type(setting, value));
            }
            (DeValue::String(_), Kind::Count { .. } | Kind::Switch) => {
                return Err(self.wrong_type(setting, value));
            }
            (DeValue::String(s), _) => s.to_string(),
            _ => return Err(self.wrong_type(setting, value)),
        };
        Ok(Some(Written {
            text,
            at: value.span().start,
        }))
    }

    fn wrong_type(&self, setting: &Setting, value: &Spanned<DeValue<'_>>) -> CliError {
        let cause = format!("a {} stands here", value.get_ref().type_str());
        self.error_at(setting.key, cause).or(self.example(setting))
    }
}

/// What stands between the items of a list, as defaults are written.
const BETWEEN: &str = ", ";

/// The items of a list.
fn items(text: &str) -> Vec<String> {
    let items = text.split(BETWEEN).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

fn wrong_kind(key: &str) -> String {
    format!("`{key}` is of another type in the settings table")
}
