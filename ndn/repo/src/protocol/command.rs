//! Commands as they come: which it is, what it is about, and how it is signed.
//!
//! ```text
//!   <repo>/<verb>/<parameters>/params-sha256=…                          signed Interest of Packet Format 0.3
//!   <repo>/<verb>/<parameters>/<time>/<nonce>/<info>/<signature>        command Interest of before
//!   <repo>/<verb>/params-sha256=…, parameters in ApplicationParameters
//! ```
//! The first is what is sent here; all are accepted.

use ndn_packet::tlv::{self, Reader};
use ndn_packet::{
    DecodeError, Interest, KeyLocatorRef, Name, NameRef, SignedInterestFields, Signer, Verifier,
};

use super::message::Parameters;

/// SignatureInfo and SignatureValue as components of a name.
const SIGNATURE_INFO: u32 = 0x16;
const SIGNATURE_VALUE: u32 = 0x17;
/// Components that sign a command Interest of before Packet Format 0.3.
const OLD_TAIL: usize = 4;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Fetch packets and keep them.
    Insert,
    /// Tell how an insertion goes.
    InsertCheck,
    /// Remove packets.
    Delete,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 3] = [Verb::Insert, Verb::InsertCheck, Verb::Delete];

    /// The command in words, for the log.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Verb::Insert => "insert command",
            Verb::InsertCheck => "insert check command",
            Verb::Delete => "delete command",
        }
    }

    /// The name component.
    pub fn component(self) -> &'static [u8] {
        match self {
            Verb::Insert => b"insert",
            Verb::InsertCheck => b"insert check",
            Verb::Delete => b"delete",
        }
    }
}

/// A command that can be understood. It is to be verified yet.
#[derive(Debug)]
pub struct Command<'a> {
    /// What is to be done.
    pub verb: Verb,
    /// With what.
    pub parameters: Parameters,
    interest: &'a Interest,
    signature: Signature<'a>,
}

#[derive(Debug)]
enum Signature<'a> {
    None,
    New,
    Old {
        time: u64,
        nonce: &'a [u8],
        info: &'a [u8],
        value: &'a [u8],
    },
}

impl<'a> Command<'a> {
    /// Reads a command to the repository `repo`; `None` when the Interest is none.
    ///
    /// # Errors
    /// [`DecodeError`] when it can't be understood.
    pub fn read(repo: &Name, interest: &'a Interest) -> Option<Result<Self, DecodeError>> {
        let name = interest.name();
        let rest = NameRef::from_value(name.value().strip_prefix(repo.value())?).ok()?;
        let verb = rest.get(0)?.as_generic()?;
        let verb = Verb::ALL.into_iter().find(|v| v.component() == verb)?;
        Some(Self::parse(verb, rest, interest))
    }

    fn parse(verb: Verb, rest: NameRef<'a>, interest: &'a Interest) -> Result<Self, DecodeError> {
        let in_name = rest.get(1).filter(|c| !c.is_params_digest());
        let parameters = match (in_name, interest.application_parameters()) {
            (Some(component), _) => Parameters::decode(component.value)?,
            (None, Some(parameters)) => Parameters::decode(&parameters)?,
            (None, None) => return Err(DecodeError::Missing("RepoCommandParameter")),
        };
        let signature = if interest.signature_info().is_some() {
            Signature::New
        } else if rest.len() == 2 + OLD_TAIL {
            old_signature(rest)?
        } else {
            Signature::None
        };
        Ok(Self {
            verb,
            parameters,
            interest,
            signature,
        })
    }

    /// Whether anybody has signed it.
    pub fn is_signed(&self) -> bool {
        !matches!(self.signature, Signature::None)
    }

    /// Whether `key` has signed it.
    pub fn is_signed_by(&self, key: &Verifier) -> bool {
        match &self.signature {
            Signature::None => false,
            Signature::New => key.verify_interest(self.interest),
            Signature::Old { info, value, .. } => {
                let signed = self.interest.name().parent();
                signature_type(info)
                    .is_some_and(|typ| key.verify_pieces(typ, &[signed.value()], value))
            }
        }
    }

    /// The digest by which it names its key, where it does so.
    pub fn key_digest(&self) -> Option<Vec<u8>> {
        match self.interest.signature_info()?.key_locator? {
            KeyLocatorRef::KeyDigest(digest) => Some(digest.to_vec()),
            KeyLocatorRef::Name(_) => None,
        }
    }

    /// The key as the command names it, where it does so.
    pub(crate) fn key_locator(&self) -> Option<KeyLocatorRef<'_>> {
        self.interest.signature_info()?.key_locator
    }

    /// When it was signed, in milliseconds since the Unix epoch, where it says so.
    pub fn time_ms(&self) -> Option<u64> {
        match &self.signature {
            Signature::None => None,
            Signature::New => self.interest.signature_info()?.time,
            Signature::Old { time, .. } => Some(*time),
        }
    }

    /// What distinguishes it from others of the same time.
    pub fn nonce(&self) -> Vec<u8> {
        match &self.signature {
            Signature::None => Vec::new(),
            Signature::New => self
                .interest
                .signature_info()
                .and_then(|info| info.nonce.map(<[u8]>::to_vec))
                .unwrap_or_default(),
            Signature::Old { nonce, .. } => nonce.to_vec(),
        }
    }
}

fn old_signature(rest: NameRef<'_>) -> Result<Signature<'_>, DecodeError> {
    let part = |i: usize| {
        rest.get(2 + i)
            .map(|c| c.value)
            .ok_or(DecodeError::Missing("signature components"))
    };
    Ok(Signature::Old {
        time: tlv::read_nonneg(part(0)?)?,
        nonce: part(1)?,
        info: inside(part(2)?, SIGNATURE_INFO)?,
        value: inside(part(3)?, SIGNATURE_VALUE)?,
    })
}

fn inside(bytes: &[u8], expected: u32) -> Result<&[u8], DecodeError> {
    match Reader::new(bytes).next()? {
        Some(element) if element.typ == expected => Ok(element.value),
        Some(element) => Err(DecodeError::UnexpectedType {
            expected,
            found: element.typ,
        }),
        None => Err(DecodeError::Truncated),
    }
}

fn signature_type(info: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(info);
    while let Ok(Some(element)) = reader.next() {
        if element.typ == 0x1b {
            return element.nonneg().ok();
        }
    }
    None
}

/// A signed command, ready to send.
pub fn command(
    repo: &Name,
    verb: Verb,
    parameters: &Parameters,
    key: &(impl Signer + ?Sized),
    time_ms: u64,
    nonce: u64,
) -> bytes::Bytes {
    let name = repo
        .append_generic(verb.component())
        .append_generic(parameters.encode());
    let fields = SignedInterestFields {
        nonce: Some(nonce),
        time_ms: Some(time_ms),
        seq_num: None,
    };
    Interest::builder(&name)
        .must_be_fresh(true)
        .nonce(nonce as u32)
        .sign(key, fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use ndn_packet::SigningKey;
    use proptest::prelude::*;

    fn repo() -> Name {
        "/repo".parse().expect("a name")
    }

    fn parameters() -> Parameters {
        Parameters {
            name: Some("/data".parse().expect("a name")),
            start: Some(0),
            end: Some(9),
            ..Parameters::default()
        }
    }

    #[test]
    fn what_is_sent_is_understood() {
        let key = SigningKey::hmac_sha256(b"owner");
        for verb in Verb::ALL {
            let wire = command(&repo(), verb, &parameters(), &key, 1234, 5);
            let interest = Interest::parse(wire).expect("an Interest");
            let command = Command::read(&repo(), &interest)
                .expect("a command")
                .expect("well formed");
            assert_eq!((command.verb, &command.parameters), (verb, &parameters()));
            assert_eq!(command.time_ms(), Some(1234));
            assert_eq!(command.nonce(), 5u64.to_be_bytes());
            assert!(command.is_signed_by(&key.verifier()));
            assert!(!command.is_signed_by(&Verifier::hmac_sha256(b"other")));
        }
    }

    #[test]
    fn command_interests_of_before_are_understood() {
        let key = SigningKey::hmac_sha256(b"owner");
        let mut name = repo()
            .append_generic(b"insert")
            .append_generic(parameters().encode())
            .append_generic([0, 0, 0, 0, 0, 0, 4, 0xd2])
            .append_generic([9; 8])
            .append_generic([0x16, 3, 0x1b, 1, 4]);
        let mut signature = BytesMut::new();
        key.sign(&[name.value()], &mut signature);
        let mut value = vec![0x17, 32];
        value.extend_from_slice(&signature);
        name = name.append_generic(value);
        let interest = Interest::parse(Interest::builder(&name).build()).expect("an Interest");
        let command = Command::read(&repo(), &interest)
            .expect("a command")
            .expect("well formed");
        assert_eq!(
            (command.time_ms(), command.nonce()),
            (Some(1234), vec![9; 8])
        );
        assert!(command.is_signed_by(&key.verifier()));
        assert!(!command.is_signed_by(&Verifier::hmac_sha256(b"other")));
    }

    #[test]
    fn others_are_none() {
        for (uri, is_command) in [
            ("/repo", false),
            ("/repo/watch/x", false),
            ("/other/insert/x", false),
            ("/repo/insert", true),
            ("/repo/insert/x", true),
        ] {
            let name: Name = uri.parse().expect("a name");
            let interest = Interest::parse(Interest::builder(&name).build()).expect("an Interest");
            match Command::read(&repo(), &interest) {
                None => assert!(!is_command, "{uri}"),
                Some(read) => assert!(is_command && read.is_err(), "{uri}"),
            }
        }
    }

    proptest! {
        #[test]
        fn no_component_is_a_panic(parts: Vec<Vec<u8>>) {
            let mut name = repo().append_generic(b"insert");
            for part in &parts {
                name = name.append_generic(part);
            }
            let interest = Interest::parse(Interest::builder(&name).build()).expect("an Interest");
            if let Some(Ok(command)) = Command::read(&repo(), &interest) {
                let _ = command.is_signed_by(&Verifier::DigestSha256);
                let _ = (command.time_ms(), command.nonce(), command.key_digest());
            }
        }
    }
}
