//! Names and packets of those who ask.

use super::parameters::ControlParameters;
use bytes::Bytes;
use ndn_packet::{Component, Interest, Name, SignedInterestFields, Signer};
use std::time::Duration;

/// Where the forwarder is that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// On this host: `/localhost/nfd`.
    #[default]
    Localhost,
    /// A neighbour: `/localhop/nfd`.
    Localhop,
}

impl Scope {
    fn name(self) -> Name {
        let scope = match self {
            Scope::Localhost => "localhost",
            Scope::Localhop => "localhop",
        };
        Name::from_components([scope, "nfd"].map(|c| Component::generic(c.as_bytes())))
    }
}

/// Name of a dataset such as `rib/list`; ask for it with CanBePrefix and MustBeFresh, then for the further segments of
/// the version that came.
pub fn dataset_name(scope: Scope, dataset: &str) -> Name {
    dataset
        .split('/')
        .fold(scope.name(), |name, part| name.append_generic(part))
}

/// Name of a command, before it is signed.
pub fn command_name(
    scope: Scope,
    module: &str,
    verb: &str,
    parameters: &ControlParameters,
) -> Name {
    scope
        .name()
        .append_generic(module)
        .append_generic(verb)
        .append_generic(parameters.encode())
}

/// A command as a signed Interest (Packet Format 0.3).
///
/// `nonce` makes it unlike any other; it serves as SignatureNonce and, cut to 32 bits, as the Interest's Nonce.
/// `unix_time` goes into the signature, so that the command cannot be replayed later.
pub fn command<S: Signer + ?Sized>(
    name: &Name,
    signer: &S,
    nonce: u64,
    unix_time: Duration,
    lifetime: Duration,
) -> Bytes {
    let fields = SignedInterestFields {
        nonce: Some(nonce),
        time_ms: u64::try_from(unix_time.as_millis()).ok(),
        seq_num: None,
    };
    Interest::builder(name)
        .must_be_fresh(true)
        .nonce(nonce as u32)
        .lifetime(lifetime)
        .sign(signer, fields)
}
