//! The NameNode by WebHDFS: what a path is, which blocks a file has, what is in a folder.

use std::fmt::Display;
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::webhdfs::{BlockLocations, Blocks, DirectoryListing, FileStatus, Remote, Status};

/// How long the NameNode may take to answer once: less than an Interest waits, so that whoever asked is told.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it may take to tell of one path, however many answers that comes in.
const PATIENCE_IN_ALL: Duration = Duration::from_secs(10);
/// Greatest answer in bytes; 256 blocks or 1000 names come to a tenth of it.
const MAX_ANSWER: u64 = 8 << 20;
/// What stands in a path or a parameter as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Why the NameNode tells nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; see whether the NameNode runs, and that store.web is its HTTP address")]
pub struct StoreError(String);

/// Why the NameNode does not tell of a path.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No NameNode answers anything.
    Silent(StoreError),
    /// One answers, but nothing that can be understood of this path.
    Path(String),
}

/// A question's end that is no answer.
#[derive(Debug)]
pub(crate) enum Failed {
    /// There is no such path, or none for this user.
    Nothing(String),
    /// None for who has not logged in.
    Login,
    /// Nothing that can be understood of this path.
    Path(String),
    /// This NameNode tells nothing; another one may.
    Silent(String),
}

/// The NameNodes of a cluster, one of which is active. Each question waits for its answer.
pub struct NameNode {
    agent: ureq::Agent,
    /// `host:port` of each one's HTTP server; the one that answered last is first.
    addresses: Vec<String>,
    user: String,
    /// How long it may take to tell of one path; what there was no time for is not known.
    in_all: Duration,
    /// When what it tells of this path is to have come.
    until: Instant,
}

impl NameNode {
    /// Those at `addresses` (`host:port` of their HTTP servers), asked as `user`.
    pub fn new(addresses: Vec<String>, user: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .build();
        Self {
            agent: config.into(),
            addresses,
            user: escaped(user),
            in_all: PATIENCE_IN_ALL,
            until: Instant::now(),
        }
    }

    /// Begins to ask about a path.
    pub(crate) fn begin(&mut self) {
        self.until = Instant::now() + self.in_all;
    }

    /// What `path` is; `None` where there is nothing that the user may see.
    pub(crate) fn status(&mut self, path: &str) -> Result<Option<Status>, Trouble> {
        let answer: Option<FileStatus> = self.ask("GETFILESTATUS", path, "")?;
        Ok(answer.map(|a| a.status))
    }

    /// The blocks that have the bytes of a file from `offset` on; `None` where there is no file that the user may read.
    pub(crate) fn blocks(
        &mut self,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<Option<Blocks>, Trouble> {
        let more = format!("&offset={offset}&length={length}");
        let answer: Option<BlockLocations> = self.ask("GET_BLOCK_LOCATIONS", path, &more)?;
        Ok(answer.map(|a| a.blocks))
    }

    /// Some of what is in a folder, in the order of names, from the one after `after` on; `None` where there is none that
    /// the user may list.
    pub(crate) fn list(
        &mut self,
        path: &str,
        after: &str,
    ) -> Result<Option<DirectoryListing>, Trouble> {
        let more = match after {
            "" => String::new(),
            after => format!("&startAfter={}", escaped(after)),
        };
        let answer: Option<crate::webhdfs::Batch> = self.ask("LISTSTATUS_BATCH", path, &more)?;
        Ok(answer.map(|a| a.listing))
    }

    fn ask<T: for<'a> Deserialize<'a>>(
        &mut self,
        question: &str,
        path: &str,
        more: &str,
    ) -> Result<Option<T>, Trouble> {
        if Instant::now() >= self.until {
            let seconds = self.in_all.as_secs_f32();
            return Err(Trouble::Path(format!("that takes longer than {seconds} s")));
        }
        let parts = escaped_path(path);
        let query = format!("{parts}?op={question}&user.name={}{more}", self.user);
        let (mut silent, mut not_understood, mut login) = (Vec::new(), None, None);
        for n in 0..self.addresses.len() {
            match self.ask_at(&self.addresses[n], &query) {
                Ok(answer) => {
                    self.addresses[..=n].rotate_right(1);
                    return Ok(Some(answer));
                }
                Err(Failed::Nothing(why)) => {
                    tracing::debug!(path, why, "the NameNode has nothing");
                    self.addresses[..=n].rotate_right(1);
                    return Ok(None);
                }
                // These may be no NameNodes at all; another one is asked.
                Err(Failed::Login) => login = login.or(Some(n)),
                Err(Failed::Path(why)) => not_understood = not_understood.or(Some(why)),
                Err(Failed::Silent(why)) => {
                    silent.push(format!("NameNode at {}: {why}", self.addresses[n]));
                }
            }
        }
        if let Some(n) = login {
            // What was told before the cluster asked for a login is not served on, either.
            let address = &self.addresses[n];
            tracing::warn!(
                path,
                address,
                "NameNode asks for a login; only clusters without Kerberos can be published"
            );
            return Ok(None);
        }
        Err(match not_understood {
            Some(why) => Trouble::Path(why),
            None => Trouble::Silent(StoreError(silent.join("; "))),
        })
    }

    fn ask_at<T: for<'a> Deserialize<'a>>(&self, address: &str, query: &str) -> Result<T, Failed> {
        let silent = |cause: &dyn Display| Failed::Silent(cause.to_string());
        let url = format!("http://{address}/webhdfs/v1/{query}");
        let mut answer = self.agent.get(&url).call().map_err(|e| silent(&e))?;
        let body = answer
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER)
            .read_to_vec()
            .map_err(|e| match e {
                ureq::Error::BodyExceedsLimit(_) => Failed::Path(e.to_string()),
                _ => silent(&e),
            })?;
        understood(answer.status().as_u16(), &body)
    }
}

/// What an answer with this status tells.
pub(crate) fn understood<T: for<'a> Deserialize<'a>>(
    status: u16,
    body: &[u8],
) -> Result<T, Failed> {
    let silent = |cause: &str| Failed::Silent(cause.to_owned());
    if status == 200 {
        return serde_json::from_slice(body).map_err(|e| Failed::Path(short(&e)));
    }
    if status == 401 {
        return Err(Failed::Login);
    }
    let Ok(Remote { exception }) = serde_json::from_slice(body) else {
        let said = format!("answers {status}, not as WebHDFS does");
        return Err(match status {
            // What stands before a server that is not there says so.
            502..=504 => Failed::Silent(said),
            _ => Failed::Path(said),
        });
    };
    let said = format!("{:.100}: {:.200}", exception.exception, exception.message);
    match exception.exception.as_str() {
        "FileNotFoundException"
        | "AccessControlException"
        | "ParentNotDirectoryException"
        | "InvalidPathException" => Err(Failed::Nothing(said)),
        "StandbyException" => Err(silent(
            "is in standby; name the active one in store.web, too",
        )),
        "RetriableException" | "SafeModeException" => Err(Failed::Silent(said)),
        _ => Err(Failed::Path(said)),
    }
}

/// The beginning of what is said: an error of JSON repeats what came, however long.
fn short(said: &dyn Display) -> String {
    format!("{:.200}", said.to_string())
}

/// A path as it stands in a URL, without the slash at its beginning.
pub(crate) fn escaped_path(path: &str) -> String {
    let parts: Vec<String> = path.split('/').skip(1).map(escaped).collect();
    parts.join("/")
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

#[cfg(test)]
#[path = "../tests/common/server.rs"]
mod server;

#[cfg(test)]
mod tests {
    use super::*;
    use server::Server;

    #[test]
    fn a_path_that_is_told_of_for_ever_is_given_up() {
        let status = r#"{"type":"FILE","pathSuffix":"a","length":0,"blockSize":1,"modificationTime":1,"fileId":7,
            "permission":"644"}"#;
        let server = Server::start(Box::new(move |query| {
            std::thread::sleep(Duration::from_millis(5));
            let body = match query.contains("LISTSTATUS_BATCH") {
                true => format!(
                    r#"{{"DirectoryListing":{{"partialListing":{{"FileStatuses":{{"FileStatus":[{status}]}}}},
                    "remainingEntries":1}}}}"#
                ),
                false => format!(r#"{{"FileStatus":{status}}}"#),
            };
            (200, body)
        }));
        let mut namenode = NameNode::new(vec![server.address.clone()], "a user");
        namenode.in_all = Duration::from_millis(700);
        namenode.begin();
        let why = loop {
            match namenode.list("/d", "a") {
                Ok(found) => assert!(found.is_some()),
                Err(why) => break why,
            }
        };
        assert!(matches!(why, Trouble::Path(_)), "{why:?}");
        assert!(server.asked.lock().expect("the log").len() > 1);
        // Of another path it may tell.
        namenode.begin();
        assert!(matches!(namenode.status("/f"), Ok(Some(_))));
    }

    #[test]
    fn what_is_not_understood_is_told_in_short() {
        let long = "x".repeat(100_000);
        let status = format!(r#"{{"FileStatus":"{long}"}}"#);
        let class = format!(r#"{{"RemoteException":{{"exception":"{long}","message":"{long}"}}}}"#);
        for (status, body) in [(200, status), (500, class)] {
            let told = understood::<FileStatus>(status, body.as_bytes());
            assert!(matches!(told, Err(Failed::Path(why)) if why.len() < 400));
        }
    }
}
