//! Real faces (Unix, TCP, TLS, UDP, shared memory) and the loop that drives the named-data cores.
//!
//! For programs that are, or speak to, a forwarder:
//!
//! | for | use |
//! |---|---|
//! | a forwarder with its faces on a thread of its own | [`Node`], [`NodeConfig`] |
//! | an application inside that process | [`App`], [`AppHandle`] |
//! | an application without a forwarder of its own | [`Client`], [`find_forwarder`] |
//! | addresses | [`FaceUri`] |
//! | certificate, key and CA of faces over TLS | [`Credentials`] |
//!
//! ```no_run
//! use ndn_io::{FaceUri, ListenConfig, Node, NodeConfig};
//!
//! let listener = ListenConfig::new(FaceUri::parse("unix:///run/nfd/nfd.sock")?);
//! let node = Node::start(NodeConfig { listeners: vec![listener], ..NodeConfig::default() })?;
//! println!("{} faces", node.status()?.faces.len());
//! node.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod app;
mod app_handle;
#[cfg(test)]
#[path = "../tests/common/authority.rs"]
#[allow(dead_code, reason = "shared with the tests of faces")]
mod authority;
mod client;
mod command;
mod config;
mod credentials;
mod driver;
mod error;
mod face;
mod find;
#[cfg(fuzzing)]
pub mod fuzzing;
mod memory;
mod node;
mod rate_limit;
mod status;
mod transport;
mod uri;

pub use app::App;
pub use app_handle::{AppHandle, AppWaker};
pub use client::{Client, ClientOptions};
pub use config::{
    ConfigErrors, FaceConfig, Lend, LinkOptions, ListenConfig, MemoryConfig, NodeConfig,
    SettingError, WorkersConfig,
};
pub use credentials::{CredentialError, CredentialFiles, Credentials};
pub use error::{ClientError, NodeError, StartError};
pub use face::link::LinkCounters;
pub use find::find_forwarder;
pub use memory::packets::{PacketBuffer, PacketBuffers};
pub use node::Node;
pub use status::{FaceStatus, ListenerStatus, NodeStatus};
pub use transport::low_water::set_low_water;
pub use uri::{
    Address, DEFAULT_MULTICAST_PORT, DEFAULT_PORT, DEFAULT_TLS_PORT, Endpoint, FaceUri,
    FaceUriError, Host, IpVersion,
};
