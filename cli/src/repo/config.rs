//! The configuration of a repository: from a TOML file to what it is opened and served with.

use std::path::{Path, PathBuf};

use ndn_io::FaceUri;
use ndn_mount::MountOptions;
use ndn_packet::{Name, SigningKey};
use ndn_repo::protocol::{InsertLimits, Trust, Waker};
use ndn_repo::{PutOptions, Repo, RepoError, RepoOptions};
use trunkline_store::Store;

use super::http::HttpConfig;
use super::settings::SCHEMA;
use super::store::StoreConfig;
use super::trust;
use crate::args::{FaceArg, KeyKind};
use crate::error::{CliError, Exit};
use crate::keygen;
use crate::keys::SignSpec;
use crate::settings::{Document, Table};
use crate::tls;

/// The owner's key, where the configuration names none.
const OWNER_KEY: &str = "owner.key";
/// The socket of a running repository.
const CONTROL_SOCKET: &str = "repo.sock";

/// All that a configuration file says.
#[derive(Debug)]
pub struct RepoConfig {
    path: PathBuf,
    /// The folder that holds everything.
    pub directory: PathBuf,
    key: Option<SignSpec>,
    /// The forwarder.
    pub face: FaceArg,
    options: RepoOptions,
    /// How files are kept.
    pub put: PutOptions,
    /// What is registered with the forwarder.
    pub serve: Vec<Name>,
    /// Under what commands come.
    pub name: Option<Name>,
    trust: Option<PathBuf>,
    /// Bounds of insertions.
    pub limits: InsertLimits,
    /// The HTTP server.
    pub http: HttpConfig,
    /// Where `repo run` mounts it, if it does.
    pub mount_at: Option<PathBuf>,
    /// How it is mounted.
    pub mount: MountOptions,
    /// The cluster behind it.
    pub store: StoreConfig,
    /// The filter of the log.
    pub log: String,
}

impl RepoConfig {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// A usage error that names file, line, key and what would be right.
    pub fn load(path: &Path) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            let error = CliError::file(path, &e);
            CliError {
                exit: Exit::Usage,
                ..error
            }
            .or("write one with [repo] directory = \"/some/folder\"; cli/repo.sample.toml explains every setting")
        })?;
        Self::parse(path, &text)
    }

    /// Reads `text`, which came from `path`.
    ///
    /// # Errors
    /// As [`RepoConfig::load`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, CliError> {
        let document = Document::parse(path, text, &SCHEMA)?;
        let repo = document.table("repo");
        let directory = needed(&repo, "directory", repo.path("directory")?)?;
        let mut put = PutOptions::default();
        if let Some(bytes) = repo.size("segment_size")? {
            put.segment_bytes = u32::try_from(bytes).unwrap_or(put.segment_bytes);
        }
        if let Some(freshness) = repo.time("freshness")? {
            put.freshness = freshness;
        }
        let mut options = RepoOptions::default();
        if let Some(bytes) = repo.size("log_size")? {
            options.log_bytes = bytes;
        }
        let serve = document
            .tables("serve")
            .iter()
            .map(|table| needed(table, "prefix", table.name("prefix")?))
            .collect::<Result<_, _>>()?;
        let insert = document.table("insert");
        let mut limits = InsertLimits::default();
        if let Some(stall) = insert.time("stall")? {
            limits.stall = stall;
        }
        if let Some(bytes) = insert.size("max_size")? {
            limits.max_bytes = bytes;
        }
        if let Some(most) = insert.count("max_running")? {
            limits.max_running = usize::try_from(most).unwrap_or(limits.max_running);
        }
        let tls = tls::files(&document.table(tls::SECTION.name))?;
        let face = repo.face_uri("face")?;
        if face.as_ref().is_some_and(FaceUri::needs_certificate) && tls.all().is_none() {
            return Err(repo
                .error_at("face", "TLS needs a certificate")
                .or("add [tls] with certificate, key and ca"));
        }
        let mounted = document.table("mount");
        let mount = MountOptions {
            root: mounted.name("prefix")?.unwrap_or_default(),
            put: put.clone(),
            versions: mounted
                .count("versions")?
                .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            allow_other: mounted.switch("allow_other")?.unwrap_or(false),
            ..MountOptions::default()
        };
        let log = document.table("log");
        let filter = needed(&log, "level", log.text("level")?)?;
        if let Err(error) = filter.parse::<tracing_subscriber::filter::Targets>() {
            return Err(log
                .error_at("level", error)
                .or("write error, warn, info, debug or trace"));
        }
        Ok(Self {
            path: path.to_owned(),
            directory,
            key: repo.key("key")?,
            face: FaceArg {
                face: face.map(|uri| uri.to_string()),
                command_key: repo.key("command_key")?,
                tls,
            },
            options,
            put,
            serve,
            name: repo.name("name")?,
            trust: repo.path("trust")?,
            limits,
            http: HttpConfig::read(&document.table("http"))?,
            mount_at: mounted.path("directory")?,
            mount,
            store: StoreConfig::read(&document.table("store"))?,
            log: filter,
        })
    }

    /// Refuses what is enough to put files but not to serve them.
    ///
    /// # Errors
    /// A usage error that says what is missing.
    pub fn check_serving(&self) -> Result<(), CliError> {
        if self.serve.is_empty() {
            return Err(
                CliError::usage(self.path.display().to_string(), "no [[serve]]")
                    .or("add one with prefix = \"/the/prefix/of/your/files\""),
            );
        }
        self.http.check()?;
        self.store.check(&self.serve, self.name.as_ref())?;
        let key = match &self.key {
            Some(key) => key.load()?,
            // The one that is made at the first use: who else may do what can be checked without it.
            None => SigningKey::Null,
        };
        trust::load(self.trust.as_deref(), &key).map(drop)
    }

    /// The owner's key, made if it is not there and the configuration names none.
    ///
    /// # Errors
    /// Its file and what is wrong with it.
    pub fn load_key(&self) -> Result<SigningKey, CliError> {
        match &self.key {
            Some(spec) => spec.load(),
            None => self.owner_key()?.load(),
        }
    }

    /// Who may do what.
    ///
    /// # Errors
    /// A usage error that names file, line, key and what would be right.
    pub fn load_trust(&self) -> Result<Trust, CliError> {
        trust::load(self.trust.as_deref(), &self.load_key()?)
    }

    /// Bounds of what other hosts put; where a cluster is, it is alone.
    pub fn insert_limits(&self) -> InsertLimits {
        InsertLimits {
            closed: self.store.taken(&self.serve),
            ..self.limits.clone()
        }
    }

    /// The cluster behind `repo`; `None` where there is none.
    ///
    /// # Errors
    /// The repository has something under the cluster's name; no thread can be had.
    pub fn open_store(&self, repo: &Repo, wake: Waker) -> Result<Option<Store>, CliError> {
        self.store
            .open(repo, &self.serve, &self.put, self.load_key()?, wake)
    }

    /// Opens the repository in this process.
    ///
    /// # Errors
    /// Another one has it, or what is wrong with its folder or key.
    pub fn open(&self) -> Result<Repo, CliError> {
        self.try_open()?.map_err(|e| self.error(&e))
    }

    /// As [`RepoConfig::open`], for whoever has a word of their own on what the repository says.
    ///
    /// # Errors
    /// What is wrong with its key.
    pub fn try_open(&self) -> Result<Result<Repo, RepoError>, CliError> {
        let key = self.load_key()?;
        Ok(Repo::open(&self.directory, key, &self.options))
    }

    /// The key in the directory, made if it is not there.
    fn owner_key(&self) -> Result<SignSpec, CliError> {
        use std::os::unix::fs::DirBuilderExt;
        let file = self.directory.join(OWNER_KEY);
        if !file.exists() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.directory)
                .map_err(|e| CliError::file(&self.directory, &e))?;
            match keygen::make(KeyKind::Ed25519, &file) {
                // Two that start at once: one of them makes it.
                Err(_) if file.exists() => {}
                made => {
                    made?;
                }
            }
        }
        Ok(SignSpec::Ed25519(file))
    }

    /// Where a running repository is spoken to.
    pub fn control_socket(&self) -> PathBuf {
        self.directory.join(CONTROL_SOCKET)
    }

    /// What the library says, in the house's form.
    pub fn error(&self, error: &RepoError) -> CliError {
        super::repo_error(error)
    }
}

fn needed<T>(table: &Table<'_>, key: &str, value: Option<T>) -> Result<T, CliError> {
    value.ok_or_else(|| {
        table
            .error(format!("no `{key}` is given"))
            .or(format!("add `{key} = …`; cli/repo.sample.toml explains it"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RepoConfig, String> {
        RepoConfig::parse(Path::new("/etc/repo.toml"), text).map_err(|e| e.to_string())
    }

    /// A setting's default stands in the table; whoever uses the library alone has the same.
    #[test]
    fn the_smallest_is_the_defaults() {
        let config = read("[repo]\ndirectory = \"/x\"\n").expect("right");
        assert_eq!(config.options, RepoOptions::default());
        assert_eq!(config.limits, InsertLimits::default());
        let (put, defaults) = (&config.put, PutOptions::default());
        assert_eq!(format!("{put:?}"), format!("{defaults:?}"));
        let (mount, defaults) = (&config.mount, MountOptions::default());
        assert_eq!(format!("{mount:?}"), format!("{defaults:?}"));
    }

    #[test]
    fn paths_are_beside_the_file() {
        let config = read("[repo]\ndirectory = \"store\"\nkey = \"hmac:secret\"\n").expect("right");
        assert_eq!(config.directory, Path::new("/etc/store"));
        assert_eq!(config.key, Some(SignSpec::Hmac("/etc/secret".into())));
        assert!(config.check_serving().is_err());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("", "no `directory`"),
            ("[repo]\ndirectory = \"\"\n", "repo.toml:2: repo.directory"),
            (
                "[repo]\ndirectory = \"/x\"\nsegment_size = \"70000\"\n",
                "segment_size",
            ),
            ("[repo]\ndirectory = \"/x\"\n[[serve]]\n", "no `prefix`"),
            ("[repo]\ndirectory = \"/x\"\nkey = \"rsa:x\"\n", "repo.key"),
            ("[repo]\ndirectry = \"/x\"\n", "did you mean `directory`"),
        ] {
            let Err(error) = read(text) else {
                panic!("accepted: {text}")
            };
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn the_sample_is_accepted_and_names_every_setting() {
        let sample = include_str!("../../repo.sample.toml");
        read(sample).expect("the sample");
        let on: String = sample
            .lines()
            .map(|l| format!("{}\n", l.strip_prefix("#: ").unwrap_or(l)))
            .collect();
        read(&on).expect("the sample with its examples");
        for setting in SCHEMA.settings {
            assert!(
                on.lines()
                    .any(|l| l.starts_with(&format!("{} =", setting.key))),
                "{}.{}",
                setting.section,
                setting.key
            );
        }
    }
}
