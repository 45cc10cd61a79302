//! The Hadoop cluster behind a repository, as the configuration has it.

use ndn_packet::{Name, SigningKey};
use ndn_repo::protocol::Waker;
use ndn_repo::{PutOptions, Repo};
use trunkline_store::{Cut, Location, NameNode, Questions, Signatures, Store, StoreOptions};

use super::repo_error;
use crate::error::CliError;
use crate::settings::Table;

/// What `[store]` says.
#[derive(Debug)]
pub struct StoreConfig {
    /// Which folder of which cluster; none without it.
    pub location: Option<Location>,
    prefix: Option<Name>,
    web: Option<Vec<String>>,
    user: String,
    root: Name,
    block_segment_bytes: u32,
    signatures: Signatures,
}

impl StoreConfig {
    /// Reads the table.
    ///
    /// # Errors
    /// A usage error that names file, line, key and what would be right.
    pub fn read(table: &Table<'_>) -> Result<Self, CliError> {
        let block_segment = table.size("block_segment_size")?.unwrap_or_default();
        Ok(Self {
            location: table.hdfs("url")?,
            prefix: table.name("prefix")?,
            web: table.host_ports("web")?,
            user: table.user_name("user")?.unwrap_or_default(),
            root: table.name("root")?.unwrap_or_default(),
            block_segment_bytes: u32::try_from(block_segment).unwrap_or_default(),
            signatures: match table.choice("signatures")? {
                Some("each") => Signatures::Each,
                _ => Signatures::Batch,
            },
        })
    }

    /// Under which name the cluster is; `None` where none is wanted.
    pub fn taken(&self, serve: &[Name]) -> Option<Name> {
        self.location.as_ref().map(|_| self.prefix(serve))
    }

    /// Refuses a name that is not served, or under which commands come.
    ///
    /// # Errors
    /// A usage error that says so.
    pub fn check(&self, serve: &[Name], commands: Option<&Name>) -> Result<(), CliError> {
        if self.location.is_none() {
            return Ok(());
        }
        let prefix = self.prefix(serve);
        let wrong = |why: &str| CliError::usage(format!("store.prefix {prefix}"), why);
        if !serve.iter().any(|served| served.is_prefix_of(&prefix)) {
            return Err(wrong("is under no prefix served").or("add a [[serve]] for it"));
        }
        if commands.is_some_and(|name| prefix.is_prefix_of(name)) {
            return Err(wrong("has the repository's own name under it")
                .or("give the cluster a prefix of its own, or another repo.name"));
        }
        Ok(())
    }

    /// The store behind `repo`, which signs with `key`, cuts files as `put` says and calls `wake` when the NameNode has
    /// answered; `None` where none is wanted.
    ///
    /// # Errors
    /// The repository has something under the prefix; no thread can be had.
    pub fn open(
        &self,
        repo: &Repo,
        serve: &[Name],
        put: &PutOptions,
        key: SigningKey,
        wake: Waker,
    ) -> Result<Option<Store>, CliError> {
        let Some(location) = &self.location else {
            return Ok(None);
        };
        let prefix = self.prefix(serve);
        let failed = |e| repo_error(&e);
        let mut is_taken = repo.find(&prefix, None).map_err(failed)?.is_some()
            || !repo.list(&prefix, None, 1).map_err(failed)?.is_empty();
        let mut take = |_| {
            is_taken = true;
            false
        };
        repo.walk_packets(&prefix, &mut take).map_err(failed)?;
        if is_taken {
            return Err(CliError::usage(
                format!("store.prefix {prefix}"),
                "the repository has files or packets of its own under it, which would be hidden",
            )
            .or("give the cluster a prefix of its own: [store] prefix = \"/…\""));
        }
        let cut = Cut {
            root: self.root.clone(),
            block_segment_bytes: self.block_segment_bytes,
            segment_bytes: put.segment_bytes,
            freshness: put.freshness,
        };
        let web = self.web.clone().unwrap_or_else(|| vec![location.web()]);
        tracing::info!(%prefix, path = location.path, namenode = web.join(","), "store");
        let questions = Questions::to(NameNode::new(web, &self.user), cut, wake)
            .map_err(|e| CliError::failed("store", e))?;
        let options = StoreOptions {
            prefix,
            path: location.path.clone(),
            key,
            signatures: self.signatures,
        };
        Ok(Some(Store::new(options, questions)))
    }

    fn prefix(&self, serve: &[Name]) -> Name {
        let first = || serve.first().cloned().unwrap_or_default();
        self.prefix.clone().unwrap_or_else(first)
    }
}
