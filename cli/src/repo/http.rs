//! The HTTP server, as the configuration has it.

use std::net::SocketAddr;

use ndn_door::{HttpOptions, HttpServer};
use ndn_packet::{Name, SigningKey};
use ndn_repo::Repo;

use crate::error::CliError;
use crate::settings::Table;

/// What `[http]` says.
#[derive(Debug)]
pub struct HttpConfig {
    /// Where the server listens; nowhere without it.
    pub listen: Option<SocketAddr>,
    anyone: bool,
    host: Option<String>,
    max_connections: Option<usize>,
}

impl HttpConfig {
    /// Reads the table.
    ///
    /// # Errors
    /// A usage error that names file, line, key and what would be right.
    pub fn read(table: &Table<'_>) -> Result<Self, CliError> {
        Ok(Self {
            listen: table.listen("listen")?,
            anyone: table.switch("anyone")?.unwrap_or(false),
            host: table.host_name("host")?,
            max_connections: table
                .count("max_connections")?
                .and_then(|n| usize::try_from(n).ok()),
        })
    }

    /// Refuses an address that strangers reach, unless they are meant to.
    ///
    /// # Errors
    /// A usage error that says which setting allows it.
    pub fn check(&self) -> Result<(), CliError> {
        match self.listen {
            Some(listen) if !listen.ip().is_loopback() && !self.anyone => Err(CliError::usage(
                format!("http.listen {listen}"),
                "other hosts would reach it, and read all that is served, unencrypted",
            )
            .or("listen on 127.0.0.1, or set http.anyone = true")),
            _ => Ok(()),
        }
    }

    /// Serves what is under `prefixes`, signed by `key`; `None` where no address is set.
    ///
    /// # Errors
    /// The address can't be had.
    pub fn start(
        &self,
        repo: &Repo,
        prefixes: &[Name],
        key: &SigningKey,
    ) -> Result<Option<HttpServer>, CliError> {
        let Some(listen) = self.listen else {
            return Ok(None);
        };
        let mut options = HttpOptions::new(listen, prefixes.to_vec(), key.verifier());
        options.hosts.extend(self.host.clone());
        if let Some(most) = self.max_connections {
            options.max_connections = most;
        }
        let server = HttpServer::start(repo.clone(), options).map_err(|e| {
            CliError::failed(format!("http.listen {listen}"), e.error)
                .or("name another address and port, or stop the program that has this one")
        })?;
        tracing::info!(address = %server.address(), "HTTP server listens");
        Ok(Some(server))
    }
}
