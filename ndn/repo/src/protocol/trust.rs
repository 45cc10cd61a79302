//! Who may do what: keys, the prefixes that they may insert and delete under, and whose packets are believed.

use std::collections::{BTreeSet, HashMap};

use ndn_packet::{Data, Name, SigningKey, Verifier, sha256, signature_type};

use super::command::{Command, Verb};

/// Keys that are tried for a command that does not tell its key by digest.
pub const MAX_KEYS: usize = 256;
/// How far a command's time may be from the repository's clock.
const WINDOW_MS: u64 = 60_000;
/// Commands remembered of each key.
const REMEMBERED: usize = 10_000;

/// Which packets an insertion by a key may bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Believed {
    /// Those with a right digest, and those signed by any key of the policy.
    #[default]
    Sound,
    /// Those signed by the same key.
    Signed,
    /// All: they are kept as they come, and whoever reads them verifies.
    Any,
}

/// What a key may do.
#[derive(Debug, Clone)]
pub struct Right {
    /// Under what.
    pub prefix: Name,
    /// Whether it may insert.
    pub insert: bool,
    /// Whether it may delete.
    pub delete: bool,
    /// Which packets its insertions may bring.
    pub believed: Believed,
}

/// A key, and what it may do.
#[derive(Debug, Clone)]
pub struct TrustedKey {
    /// The key.
    pub verifier: Verifier,
    /// By which commands name it, and what it is remembered by.
    pub digest: [u8; 32],
    /// What it may do: one of these is enough.
    pub rights: Vec<Right>,
}

/// The trust policy of a repository.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// The keys.
    pub keys: Vec<TrustedKey>,
}

impl TrustedKey {
    /// A public key.
    pub fn public(verifier: Verifier, rights: Vec<Right>) -> Self {
        let digest = verifier.to_spki().map_or([0; 32], |spki| sha256(&spki));
        Self {
            verifier,
            digest,
            rights,
        }
    }

    /// A shared secret.
    pub fn secret(secret: &[u8], rights: Vec<Right>) -> Self {
        Self {
            verifier: Verifier::hmac_sha256(secret),
            digest: sha256(secret),
            rights,
        }
    }

    /// The right by which this key may do this, if it has one.
    fn right(&self, verb: Verb, name: &Name) -> Option<&Right> {
        self.rights.iter().find(|right| {
            right.prefix.is_prefix_of(name)
                && match verb {
                    Verb::Insert => right.insert,
                    Verb::Delete => right.delete,
                    Verb::InsertCheck => right.insert || right.delete,
                }
        })
    }
}

impl Trust {
    /// The owner may do everything. A key without a key (a digest) is nobody's.
    pub fn owner(key: &SigningKey) -> Self {
        use ndn_packet::{KeyLocatorRef, Signer};
        let digest = match key.key_locator() {
            Some(KeyLocatorRef::KeyDigest(digest)) => digest.try_into().ok(),
            _ => None,
        };
        let right = Right {
            prefix: Name::new(),
            insert: true,
            delete: true,
            believed: Believed::default(),
        };
        Self {
            keys: digest
                .map(|digest| TrustedKey {
                    verifier: key.verifier(),
                    digest,
                    rights: vec![right],
                })
                .into_iter()
                .collect(),
        }
    }

    /// The key that has signed a command.
    pub(crate) fn signer(&self, command: &Command<'_>) -> Option<&TrustedKey> {
        let digest = command.key_digest();
        self.keys
            .iter()
            .take(MAX_KEYS)
            .filter(|key| digest.as_ref().is_none_or(|d| key.digest[..] == d[..]))
            .find(|key| command.is_signed_by(&key.verifier))
    }

    /// Whether a packet that `by` inserts may be kept.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn check(
        &self,
        by: &[u8; 32],
        believed: Believed,
        data: &Data,
    ) -> Result<(), Untrusted> {
        let is_digest = data.signature_type() == signature_type::DIGEST_SHA256;
        let is_trusted = match believed {
            Believed::Any => true,
            Believed::Sound if is_digest => data.verify_digest(),
            Believed::Sound => self.keys.iter().any(|key| key.verifier.verify(data)),
            Believed::Signed => self
                .keys
                .iter()
                .any(|key| key.digest == *by && key.verifier.verify(data)),
        };
        if is_trusted {
            return Ok(());
        }
        let locator = data.key_locator().map(|key| key.to_string());
        Err(match believed {
            Believed::Signed => Untrusted::NotByInserter(locator),
            _ if is_digest => Untrusted::WrongDigest,
            _ => Untrusted::UnknownKey(locator),
        })
    }
}

/// Why a packet may not be kept; with the key that it names, where it names one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Untrusted {
    /// Its content is not what its digest says.
    #[error("its SHA-256 digest is wrong")]
    WrongDigest,
    /// No key of the policy has signed it.
    #[error("no key of the trust policy verifies its signature; it names {}", shown(.0))]
    UnknownKey(Option<String>),
    /// The policy wants the inserter's own signature.
    #[error("it is not signed by the key that inserts it, as the trust policy demands; it names {}", shown(.0))]
    NotByInserter(Option<String>),
}

fn shown(key: &Option<String>) -> String {
    key.as_ref()
        .map_or_else(|| String::from("no key"), |key| format!("key {key}"))
}

/// Why a command was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody has signed it.
    #[error("it is not signed")]
    Unsigned,
    /// Its signature is no trusted key's.
    #[error("no key of the trust policy verifies its signature")]
    WrongSignature,
    /// It has come before, or says that it is of another time.
    #[error("it has come before, or its time is more than 60 s from this host's clock")]
    Replayed,
    /// Its key may not do this there.
    #[error("the trust policy does not let its key do this under this name")]
    Forbidden,
}

/// Commands that were seen, so that none is carried out twice.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    by_key: HashMap<[u8; 32], SeenOfKey>,
}

#[derive(Debug, Default)]
struct SeenOfKey {
    /// Commands of this time or earlier are refused.
    floor_ms: u64,
    recent: BTreeSet<(u64, Vec<u8>)>,
}

impl Seen {
    /// After a start: what a key signed up to this time was seen before.
    pub fn restore(&mut self, key: [u8; 32], time_ms: u64) {
        self.by_key.entry(key).or_default().floor_ms = time_ms;
    }

    /// Whether this command is new; from now on it is not.
    pub fn is_new(&mut self, key: [u8; 32], time_ms: u64, nonce: Vec<u8>, now_ms: u64) -> bool {
        let seen = self.by_key.entry(key).or_default();
        let in_time = time_ms.abs_diff(now_ms) <= WINDOW_MS;
        if !in_time || time_ms <= seen.floor_ms || !seen.recent.insert((time_ms, nonce)) {
            return false;
        }
        while let Some((oldest, _)) = seen.recent.first()
            && (seen.recent.len() > REMEMBERED || oldest.saturating_add(WINDOW_MS) < now_ms)
        {
            seen.floor_ms = seen.floor_ms.max(*oldest);
            seen.recent.pop_first();
        }
        true
    }
}

impl Trust {
    /// Whose command it is, and by what right; or why it is refused.
    pub(crate) fn authorize(
        &self,
        command: &Command<'_>,
        seen: &mut Seen,
        now_ms: u64,
    ) -> Result<([u8; 32], Believed), Refusal> {
        if !command.is_signed() {
            return Err(Refusal::Unsigned);
        }
        let key = self.signer(command).ok_or(Refusal::WrongSignature)?;
        let time = command.time_ms().ok_or(Refusal::Replayed)?;
        if !seen.is_new(key.digest, time, command.nonce(), now_ms) {
            return Err(Refusal::Replayed);
        }
        let nothing = Name::new();
        let name = command.parameters.name.as_ref();
        let right = match (command.verb, name) {
            (Verb::InsertCheck, None) => key.rights.first(),
            (verb, name) => key.right(verb, name.unwrap_or(&nothing)),
        };
        match right {
            Some(right) => Ok((key.digest, right.believed)),
            None => Err(Refusal::Forbidden),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_new_once_and_in_its_time() {
        let (key, now) = ([1; 32], 1_000_000);
        let mut seen = Seen::default();
        assert!(seen.is_new(key, now, vec![1], now));
        assert!(!seen.is_new(key, now, vec![1], now));
        assert!(
            seen.is_new(key, now, vec![2], now),
            "another at the same time"
        );
        assert!(
            seen.is_new(key, now - 10, vec![3], now),
            "overtaken on the way"
        );
        assert!(seen.is_new([2; 32], now, vec![1], now), "another's");
        for time in [0, now - WINDOW_MS - 1, now + WINDOW_MS + 1, u64::MAX] {
            assert!(!seen.is_new(key, time, vec![4], now), "{time}");
        }
        let mut restarted = Seen::default();
        restarted.restore(key, now);
        assert!(!restarted.is_new(key, now, vec![1], now + 5));
        assert!(restarted.is_new(key, now + 1, vec![1], now + 5));
    }

    #[test]
    fn what_is_forgotten_is_refused() {
        let key = [1; 32];
        let mut seen = Seen::default();
        let now = 10_000_000;
        for time in 0..=REMEMBERED as u64 {
            assert!(seen.is_new(key, now + time, vec![], now));
        }
        assert_eq!(seen.by_key[&key].recent.len(), REMEMBERED);
        assert!(!seen.is_new(key, now, vec![], now), "the oldest had to go");
        assert!(
            !seen.is_new(key, now, vec![7], now),
            "and with it all of its time"
        );
        assert!(!seen.is_new(key, now + 5, vec![], now + WINDOW_MS * 3));
    }
}
