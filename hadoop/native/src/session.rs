//! The secure channel under a control connection, keyed by a secret that both
//! ends have: the password of a block token.
//!
//! A Noise handshake, `NNpsk0` with X25519, AES-256-GCM and SHA-256, then
//! records of the session that came of it. Each end knows that the other has
//! the secret, and whoever learns the secret later reads nothing that was
//! recorded. No I/O: bytes in, bytes out; what stands around them on the wire
//! is Java's.
//!
//! ```text
//!   client                          server
//!   Shaking ──e, psk──────────────▶ Shaking     the server knows a right secret, or refuses
//!   Open    ◀──────────────e, ee──  Open        the client knows the server
//!   Open    ◀──────records───────▶  Open        the first one shows that the client is no recording
//! ```

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hkdf;
use ring::rand::SystemRandom;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, FallbackResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState, StatelessTransportState};
use zeroize::Zeroizing;

use crate::error::{NativeError, Result};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Tells this use of the secret from every other one.
const LABEL: &[u8] = b"trunkline control connection, psk 1";

/// Length of each of the two messages of the handshake, in bytes.
pub const HANDSHAKE_LEN: usize = 48;
/// What a record is longer than what it carries, in bytes.
pub const RECORD_OVERHEAD: usize = 16;
/// Most bytes that one record carries.
pub const MAX_RECORD_PLAIN: usize = 16 * 1024;

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Connected, and speaks first.
    Client,
    /// Accepted.
    Server,
}

/// One end of a secure channel. One thread may seal while another one opens.
pub struct Session {
    /// In one place from its beginning to its end: what is moved leaves copies.
    shaking: Mutex<Option<Box<HandshakeState>>>,
    open: OnceLock<StatelessTransportState>,
    /// Number of the next record each way; `None` after one that was refused:
    /// nothing behind it can be trusted to be in its place.
    sent: Mutex<Option<u64>>,
    received: Mutex<Option<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(what: &str) -> NativeError {
    NativeError::Failed(format!("secure control connection: {what}"))
}

/// A single output of 32 bytes.
struct Len32;

impl hkdf::KeyType for Len32 {
    fn len(&self) -> usize {
        32
    }
}

fn psk(password: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, &[])
        .extract(password)
        .expand(&[LABEL], Len32)
        .and_then(|okm| okm.fill(&mut *key))
        .expect("32 bytes are no more than HKDF gives");
    key
}

/// Diffie-Hellman by ring, which snow's resolver for ring leaves out: ring keeps
/// no private keys. The pattern has none that are kept, and uses each once.
struct RingDh;

impl CryptoResolver for RingDh {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        None
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::new(Ephemeral::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, _: &HashChoice) -> Option<Box<dyn Hash>> {
        None
    }

    fn resolve_cipher(&self, _: &CipherChoice) -> Option<Box<dyn Cipher>> {
        None
    }
}

/// A key pair for one exchange.
#[derive(Default)]
struct Ephemeral {
    private: Mutex<Option<EphemeralPrivateKey>>,
    public: [u8; 32],
}

impl Dh for Ephemeral {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, _: &[u8]) {
        unreachable!("the pattern has no static keys");
    }

    fn generate(&mut self, _: &mut dyn Random) -> std::result::Result<(), snow::Error> {
        let failed = |_| snow::Error::Rng;
        let private =
            EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(failed)?;
        let public = private.compute_public_key().map_err(failed)?;
        self.public.copy_from_slice(public.as_ref());
        self.private = Mutex::new(Some(private));
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        unreachable!("ring gives private keys to nobody");
    }

    fn dh(&self, theirs: &[u8], out: &mut [u8]) -> std::result::Result<(), snow::Error> {
        let private = lock(&self.private).take().ok_or(snow::Error::Dh)?;
        // Of a buffer for keys of all kinds. A point of small order is refused by ring.
        agree_ephemeral(
            private,
            &UnparsedPublicKey::new(&X25519, &theirs[..32]),
            |shared| {
                out[..shared.len()].copy_from_slice(shared);
            },
        )
        .map_err(|_| snow::Error::Dh)
    }
}

impl Session {
    /// An end that has said nothing yet. `prologue` is what both ends have seen
    /// before: where they differ, the handshake fails.
    ///
    /// # Errors
    /// An empty password is no secret.
    pub fn new(role: Role, password: &[u8], prologue: &[u8]) -> Result<Self> {
        if password.is_empty() {
            return Err(NativeError::Argument(
                "block token without a password".into(),
            ));
        }
        let broken = |e: snow::Error| refused(&e.to_string());
        let resolver = FallbackResolver::new(Box::new(RingResolver), Box::new(RingDh));
        let params = PATTERN.parse().map_err(|e: snow::Error| broken(e))?;
        let builder = Builder::with_resolver(params, Box::new(resolver))
            .prologue(prologue)
            .map_err(broken)?;
        let state = match role {
            Role::Client => builder.build_initiator(),
            Role::Server => builder.build_responder(),
        };
        let mut state = Box::new(state.map_err(broken)?);
        state.set_psk(0, &*psk(password)).map_err(broken)?;
        Ok(Session {
            shaking: Mutex::new(Some(state)),
            open: OnceLock::new(),
            sent: Mutex::new(Some(0)),
            received: Mutex::new(Some(0)),
        })
    }

    /// This end's message of the handshake.
    ///
    /// # Errors
    /// When it is not this end's turn.
    pub fn say(&self) -> Result<[u8; HANDSHAKE_LEN]> {
        self.step(|state| {
            let mut message = [0; HANDSHAKE_LEN];
            let length = state.write_message(&[], &mut message)?;
            debug_assert_eq!(length, HANDSHAKE_LEN);
            Ok(message)
        })
    }

    /// Takes the other end's message of the handshake.
    ///
    /// # Errors
    /// When it was made with another secret, or after another prologue, when it
    /// was changed on its way, or is not due. The session is of no use then.
    pub fn hear(&self, message: &[u8]) -> Result<()> {
        if message.len() != HANDSHAKE_LEN {
            return Err(refused("handshake message of another length"));
        }
        self.step(|state| {
            state
                .read_message(message, &mut [0; HANDSHAKE_LEN])
                .map(drop)
        })
    }

    fn step<T>(
        &self,
        step: impl FnOnce(&mut HandshakeState) -> std::result::Result<T, snow::Error>,
    ) -> Result<T> {
        let mut shaking = lock(&self.shaking);
        // Taken out, so that a state which has failed is not used again.
        let mut state = shaking
            .take()
            .ok_or_else(|| refused("its handshake is over"))?;
        let stepped = step(&mut state);
        // The pattern has mixed it into the first message, said or heard: it is of no use any more.
        let wiped = state.set_psk(0, &[0; 32]);
        debug_assert!(wiped.is_ok());
        let done = stepped.map_err(|e| match e {
            snow::Error::Decrypt => refused("the other end has another secret"),
            other => refused(&other.to_string()),
        })?;
        if state.is_handshake_finished() {
            let open = state
                .into_stateless_transport_mode()
                .map_err(|e| refused(&e.to_string()))?;
            drop(self.open.set(open));
        } else {
            *shaking = Some(state);
        }
        Ok(done)
    }

    /// Whether records can be sealed and opened.
    pub fn is_open(&self) -> bool {
        self.open.get().is_some()
    }

    fn transport(&self) -> Result<&StatelessTransportState> {
        self.open
            .get()
            .ok_or_else(|| refused("its handshake is not over"))
    }

    /// Seals the next record into the front of `to`; gives its length.
    ///
    /// # Errors
    /// When the handshake is not over, there is too much for a record, or no
    /// room for it in `to`.
    pub fn seal(&self, plain: &[u8], to: &mut [u8]) -> Result<usize> {
        let transport = self.transport()?;
        if plain.len() > MAX_RECORD_PLAIN || to.len() < plain.len() + RECORD_OVERHEAD {
            return Err(NativeError::Argument(format!(
                "{} bytes do not go into one record",
                plain.len()
            )));
        }
        numbered(&self.sent, |number| {
            transport.write_message(number, plain, to)
        })
    }

    /// Opens the next record into the front of `to`; gives the length of what it
    /// carries.
    ///
    /// # Errors
    /// When it is not the next one as the other end sealed it; then none after
    /// it is opened.
    pub fn open(&self, sealed: &[u8], to: &mut [u8]) -> Result<usize> {
        let transport = self.transport()?;
        let carries = sealed.len().checked_sub(RECORD_OVERHEAD);
        if carries.is_none_or(|len| len > MAX_RECORD_PLAIN || len > to.len()) {
            return Err(refused(&format!("record of {} bytes", sealed.len())));
        }
        numbered(&self.received, |number| {
            transport.read_message(number, sealed, to)
        })
    }
}

/// Does one record with its number, which is never used again.
fn numbered(
    next: &Mutex<Option<u64>>,
    record: impl FnOnce(u64) -> std::result::Result<usize, snow::Error>,
) -> Result<usize> {
    let mut next = lock(next);
    let number = next
        .take()
        .ok_or_else(|| refused("a record before was refused"))?;
    let length = record(number).map_err(|e| match e {
        snow::Error::Decrypt => refused("a record was changed, or is out of its place"),
        other => refused(&other.to_string()),
    })?;
    *next = number.checked_add(1);
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSWORD: &[u8] = b"twenty bytes of HMAC";

    fn ends(client: (&[u8], &[u8]), server: (&[u8], &[u8])) -> (Session, Session) {
        (
            Session::new(Role::Client, client.0, client.1).unwrap(),
            Session::new(Role::Server, server.0, server.1).unwrap(),
        )
    }

    fn open() -> (Session, Session) {
        let (client, server) = ends((PASSWORD, b"v3"), (PASSWORD, b"v3"));
        server.hear(&client.say().unwrap()).unwrap();
        client.hear(&server.say().unwrap()).unwrap();
        assert!(client.is_open() && server.is_open());
        (client, server)
    }

    fn sealed(by: &Session, plain: &[u8]) -> Vec<u8> {
        let mut to = vec![0; plain.len() + RECORD_OVERHEAD];
        assert_eq!(by.seal(plain, &mut to).unwrap(), to.len());
        to
    }

    fn opened(by: &Session, record: &[u8]) -> Result<Vec<u8>> {
        let mut to = vec![0; record.len()];
        let length = by.open(record, &mut to)?;
        to.truncate(length);
        Ok(to)
    }

    #[test]
    fn both_ways_at_once() {
        let (client, server) = open();
        for n in 0..3u8 {
            let there = sealed(&client, &[n; 100]);
            let back = sealed(&server, &[n ^ 0xff; 7]);
            assert!(!there.windows(100).any(|w| w == [n; 100]));
            assert_eq!(opened(&server, &there).unwrap(), [n; 100]);
            assert_eq!(opened(&client, &back).unwrap(), [n ^ 0xff; 7]);
        }
        assert_eq!(opened(&server, &sealed(&client, b"")).unwrap(), b"");
    }

    #[test]
    fn each_session_has_keys_of_its_own() {
        let (first, _) = open();
        let (second, _) = open();
        assert_ne!(sealed(&first, &[7; 64]), sealed(&second, &[7; 64]));
    }

    #[test]
    fn another_password_is_refused_by_the_server() {
        let (client, server) = ends((PASSWORD, b"v3"), (b"another password....", b"v3"));
        assert!(server.hear(&client.say().unwrap()).is_err());
        assert!(server.say().is_err(), "it is of no use any more");
        assert!(!server.is_open());
    }

    #[test]
    fn a_server_without_the_password_is_refused_by_the_client() {
        let (client, server) = ends((PASSWORD, b"v3"), (PASSWORD, b"v3"));
        let (_, liar) = ends((b"guess", b"v3"), (b"guess", b"v3"));
        let hello = client.say().unwrap();
        server.hear(&hello).unwrap();
        assert!(liar.hear(&hello).is_err());
        // What a liar may still do is make something up, or echo.
        assert!(client.hear(&hello).is_err());
        let (client, _) = ends((PASSWORD, b"v3"), (PASSWORD, b"v3"));
        client.say().unwrap();
        assert!(client.hear(&[9; HANDSHAKE_LEN]).is_err());
    }

    #[test]
    fn what_was_seen_before_is_bound() {
        let (client, server) = ends((PASSWORD, b"version 3"), (PASSWORD, b"version 2"));
        assert!(server.hear(&client.say().unwrap()).is_err());
    }

    #[test]
    fn a_replayed_hello_opens_no_record() {
        let (client, server) = ends((PASSWORD, b"v3"), (PASSWORD, b"v3"));
        let hello = client.say().unwrap();
        server.hear(&hello).unwrap();
        client.hear(&server.say().unwrap()).unwrap();
        let record = sealed(&client, b"the op header");
        let (_, again) = ends((PASSWORD, b"v3"), (PASSWORD, b"v3"));
        again.hear(&hello).unwrap();
        again.say().unwrap();
        assert!(opened(&again, &record).is_err());
    }

    #[test]
    fn out_of_turn() {
        let (client, server) = ends((PASSWORD, b""), (PASSWORD, b""));
        assert!(server.say().is_err());
        assert!(client.seal(b"early", &mut [0; 64]).is_err());
        assert!(client.open(&[0; 64], &mut [0; 64]).is_err());
        assert!(client.hear(&[0; 12]).is_err());
        client.say().unwrap();
        assert!(client.say().is_err());
        assert!(Session::new(Role::Client, b"", b"").is_err());
    }

    #[test]
    fn replayed_swapped_and_dropped_records() {
        let (client, server) = open();
        let first = sealed(&client, b"first");
        opened(&server, &first).unwrap();
        assert!(opened(&server, &first).is_err(), "replayed");
        let second = sealed(&client, b"second");
        assert!(
            opened(&server, &second).is_err(),
            "nothing is opened after that"
        );

        let (client, server) = open();
        let (_, second) = (sealed(&client, b"first"), sealed(&client, b"second"));
        assert!(opened(&server, &second).is_err(), "one is missing");
    }

    #[test]
    fn a_record_sent_back_is_refused() {
        let (client, _server) = open();
        let record = sealed(&client, b"mine");
        assert!(opened(&client, &record).is_err());
    }

    #[test]
    fn lengths_out_of_bounds() {
        let (client, server) = open();
        let mut large = vec![0; MAX_RECORD_PLAIN + 64];
        assert!(client.seal(&[0; MAX_RECORD_PLAIN + 1], &mut large).is_err());
        assert!(client.seal(&[0; 100], &mut [0; 115]).is_err());
        for len in [
            0,
            RECORD_OVERHEAD - 1,
            MAX_RECORD_PLAIN + RECORD_OVERHEAD + 1,
        ] {
            assert!(server.open(&vec![0; len], &mut large).is_err(), "{len}");
        }
        // Neither used a number up.
        let full = sealed(&client, &[5; MAX_RECORD_PLAIN]);
        assert!(server.open(&full, &mut [0; 100]).is_err());
        assert_eq!(opened(&server, &full).unwrap(), [5; MAX_RECORD_PLAIN]);
    }

    proptest! {
        #[test]
        fn any_change_of_the_handshake_is_seen(at in 0..HANDSHAKE_LEN, bit in 0..8u8, second: bool) {
            let (client, server) = ends((PASSWORD, b"v3"), (PASSWORD, b"v3"));
            let mut hello = client.say().unwrap();
            if !second {
                hello[at] ^= 1 << bit;
            }
            let heard = server.hear(&hello);
            if !second {
                // X25519 has no use for the last bit of a public key; SHA-256 over the handshake has.
                prop_assert!(heard.is_err());
                return Ok(());
            }
            let mut answer = server.say().unwrap();
            answer[at] ^= 1 << bit;
            prop_assert!(client.hear(&answer).is_err());
        }

        #[test]
        fn any_change_of_a_record_is_seen(plain in proptest::collection::vec(any::<u8>(), 0..600), at: usize, bit in 0..8u8) {
            let (client, server) = open();
            let mut record = sealed(&client, &plain);
            let at = at % record.len();
            record[at] ^= 1 << bit;
            prop_assert!(opened(&server, &record).is_err());
        }

        #[test]
        fn truncated_records_are_refused(plain in proptest::collection::vec(any::<u8>(), 1..600), cut: usize) {
            let (client, server) = open();
            let record = sealed(&client, &plain);
            prop_assert!(opened(&server, &record[..cut % record.len()]).is_err());
        }

        #[test]
        fn what_is_sealed_is_opened(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..2000), 1..6)) {
            let (client, server) = open();
            for piece in pieces {
                prop_assert_eq!(&opened(&server, &sealed(&client, &piece)).unwrap(), &piece);
            }
        }
    }
}
