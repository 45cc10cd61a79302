//! Records once the handshake is over: sealing what is sent, opening what comes, and the few messages that may stand
//! between records of data.
//!
//! rustls protects the records (its own encrypters and decrypters) and makes the keys; what is done here is what a kernel
//! would do with them. It is done here for the copies: rustls's own buffers cost two more on the way in. Data is sealed
//! from where it lies in the send queue, and opened where it was received.
//!
//! ```text
//! | 23 | 3 3 | length (2) | sealed: content, its type, zeros | tag (16) |
//! ```
//! Messages beside data: KeyUpdate (the peer's next records have new keys), NewSessionTicket (passed over: nothing is
//! resumed), alerts. Few of them may follow each other without data in between, and KeyUpdates without much of it.

use std::io;

use rustls::crypto::cipher::{
    InboundOpaqueMessage, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundPlainMessage,
};
use rustls::kernel::KernelConnection;
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, Error, ExtractedSecrets,
    ProtocolVersion, SupportedCipherSuite, Tls13CipherSuite,
};

use crate::credentials::words;

/// Type, version and length of a record.
pub(super) const HEADER: usize = 5;
/// Most content of a record.
pub(super) const MAX_CONTENT: usize = 16 << 10;
/// What a record may be longer than its content.
const MAX_EXPANSION: usize = 256;
/// No record is longer.
pub(super) const MAX_RECORD: usize = HEADER + MAX_CONTENT + MAX_EXPANSION;
/// Records without data that may follow each other.
const MAX_IDLE: u32 = 32;
/// Bytes of data that a peer's KeyUpdates may be ahead of, each counted as a whole record of it: making keys costs about
/// as much as opening that, whatever little data goes between.
const MAX_AHEAD: usize = 32 * MAX_CONTENT;

const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
/// A KeyUpdate that asks for none in return.
const KEY_UPDATE_MESSAGE: [u8; 5] = [KEY_UPDATE, 0, 0, 1, 0];
const FATAL: u8 = 2;
const WARNING: u8 = 1;

/// Makes the next keys.
pub(super) trait Rekey: Send {
    /// Those of what we send.
    fn next_sent(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error>;
    /// Those of what comes.
    fn next_received(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error>;
    /// With which cipher.
    fn suite(&self) -> SupportedCipherSuite;
}

impl<D: Send> Rekey for KernelConnection<D> {
    fn next_sent(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        self.update_tx_secret()
    }

    fn next_received(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        self.update_rx_secret()
    }

    fn suite(&self) -> SupportedCipherSuite {
        self.negotiated_cipher_suite()
    }
}

/// Both directions of a connection.
pub(super) struct Records {
    keys: Box<dyn Rekey>,
    suite: &'static Tls13CipherSuite,
    is_client: bool,
    sealer: Box<dyn MessageEncrypter>,
    sent: u64,
    /// Records that one key may seal.
    most_sent: u64,
    opener: Box<dyn MessageDecrypter>,
    received: u64,
    /// Records without data since the last one with some.
    idle: u32,
    /// Bytes of data that the peer's KeyUpdates are ahead of.
    ahead: usize,
    /// Bytes of a ticket that are still to come.
    skip: usize,
    /// The peer asks for new keys of ours.
    must_rekey: bool,
}

/// What was in a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Data(&'a [u8]),
    /// Something between the two ends of TLS.
    Message,
    /// The peer sends nothing more.
    Closed,
}

/// What is wrong with what came, and the alert that tells the peer.
#[derive(Debug)]
pub(super) struct Bad {
    pub alert: AlertDescription,
    pub error: io::Error,
}

fn bad(alert: AlertDescription, what: impl Into<String>) -> Bad {
    Bad {
        alert,
        error: io::Error::new(io::ErrorKind::InvalidData, what.into()),
    }
}

fn general(error: Error) -> io::Error {
    io::Error::other(words::of_connection(&error))
}

/// Bytes of the record that begins here, once its header is there.
///
/// # Errors
/// It is no record that may stand here.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>, Bad> {
    let [typ, major, _, high, low, ..] = *bytes else {
        return Ok(None);
    };
    let content = usize::from(u16::from_be_bytes([high, low]));
    if ContentType::from(typ) != ContentType::ApplicationData || major != 3 {
        return Err(bad(
            AlertDescription::UnexpectedMessage,
            "the peer sent a record that is not protected",
        ));
    }
    if content > MAX_CONTENT + MAX_EXPANSION {
        return Err(bad(
            AlertDescription::RecordOverflow,
            "the peer sent a record that is too long",
        ));
    }
    Ok(Some(HEADER + content))
}

impl Records {
    /// With the keys that the handshake has led to.
    ///
    /// # Errors
    /// They are of a cipher that is none of TLS 1.3's.
    pub fn new(
        secrets: ExtractedSecrets,
        keys: Box<dyn Rekey>,
        is_client: bool,
    ) -> io::Result<Self> {
        let suite = keys.suite();
        let suite = suite
            .tls13()
            .ok_or_else(|| io::Error::other("no TLS 1.3"))?;
        let (sent, sealing) = secrets.tx;
        let (received, opening) = secrets.rx;
        Ok(Self {
            keys,
            suite,
            is_client,
            sealer: sealer(suite, sealing)?,
            sent,
            most_sent: suite.common.confidentiality_limit / 2,
            opener: opener(suite, opening)?,
            received,
            idle: 0,
            ahead: 0,
            skip: 0,
            must_rekey: false,
        })
    }

    /// Opens a record, whole and with its header, where it lies.
    ///
    /// # Errors
    /// It is not the peer's next one, or nothing that may stand there.
    pub fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<Content<'a>, Bad> {
        let sealed = record.get_mut(HEADER..).unwrap_or_default();
        let message = InboundOpaqueMessage::new(
            ContentType::ApplicationData,
            ProtocolVersion::TLSv1_2,
            sealed,
        );
        let opened = self.opener.decrypt(message, self.received);
        let opened = opened.map_err(|error| match error {
            Error::DecryptError => bad(
                AlertDescription::BadRecordMac,
                "the peer sent a record that was changed on the way",
            ),
            other => bad(
                AlertDescription::UnexpectedMessage,
                words::of_connection(&other),
            ),
        })?;
        self.received += 1;
        match opened.typ {
            ContentType::ApplicationData if !opened.payload.is_empty() && self.skip == 0 => {
                self.idle = 0;
                self.ahead = self.ahead.saturating_sub(opened.payload.len());
                return Ok(Content::Data(opened.payload));
            }
            ContentType::ApplicationData if self.skip == 0 => {}
            ContentType::Handshake => self.take_messages(opened.payload)?,
            ContentType::Alert if self.skip == 0 => return take_alert(opened.payload),
            _ => return Err(unexpected()),
        }
        self.idle += 1;
        if self.idle > MAX_IDLE {
            return Err(bad(
                AlertDescription::UnexpectedMessage,
                "the peer sends records without data and no end",
            ));
        }
        Ok(Content::Message)
    }

    fn take_messages(&mut self, mut rest: &[u8]) -> Result<(), Bad> {
        while !rest.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(rest.len());
                self.skip -= skipped;
                rest = &rest[skipped..];
                continue;
            }
            let [typ, a, b, c, body @ ..] = rest else {
                return Err(bad(
                    AlertDescription::DecodeError,
                    "the peer sent a message without its length",
                ));
            };
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            match *typ {
                NEW_SESSION_TICKET if self.is_client && len <= 1 << 16 => {
                    self.skip = len;
                    rest = body;
                }
                // Behind it everything has other keys: nothing may follow in the same record.
                KEY_UPDATE if len == 1 && body.len() == 1 && body[0] <= 1 => {
                    let (received, secrets) = self.keys.next_received().map_err(internal)?;
                    self.opener = opener(self.suite, secrets).map_err(|error| Bad {
                        alert: AlertDescription::InternalError,
                        error,
                    })?;
                    self.received = received;
                    self.ahead += MAX_CONTENT;
                    if self.ahead > MAX_AHEAD {
                        return Err(bad(
                            AlertDescription::UnexpectedMessage,
                            "the peer renews its keys all the time",
                        ));
                    }
                    self.must_rekey |= body[0] == 1;
                    rest = &[];
                }
                _ => return Err(unexpected()),
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn set_most_sent(&mut self, records: u64) {
        self.most_sent = records;
    }

    /// Whether what is sent next must be a KeyUpdate: one was asked for, or the key has sealed half of what it may.
    pub fn must_rekey(&self) -> bool {
        self.must_rekey || self.sent >= self.most_sent
    }

    /// Takes new keys for what is sent from now on; the record that tells so.
    ///
    /// # Errors
    /// There are none.
    pub fn rekey(&mut self) -> io::Result<Vec<u8>> {
        let told = self.seal_as(ContentType::Handshake, KEY_UPDATE_MESSAGE[..].into())?;
        let (sent, secrets) = self.keys.next_sent().map_err(general)?;
        self.sealer = sealer(self.suite, secrets)?;
        self.sent = sent;
        self.must_rekey = false;
        Ok(told)
    }

    /// A record with this data, [`MAX_CONTENT`] bytes at most. The one copy that TLS costs on the way out is made here.
    ///
    /// # Errors
    /// It can't be sealed.
    pub fn seal(&mut self, data: OutboundChunks<'_>) -> io::Result<Vec<u8>> {
        self.seal_as(ContentType::ApplicationData, data)
    }

    /// A record that ends what we send: `None` says that all went well.
    ///
    /// # Errors
    /// It can't be sealed.
    pub fn seal_end(&mut self, alert: Option<AlertDescription>) -> io::Result<Vec<u8>> {
        let (level, alert) = match alert {
            None => (WARNING, AlertDescription::CloseNotify),
            Some(alert) => (FATAL, alert),
        };
        self.seal_as(ContentType::Alert, [level, alert.into()][..].into())
    }

    pub(super) fn seal_as(
        &mut self,
        typ: ContentType,
        payload: OutboundChunks<'_>,
    ) -> io::Result<Vec<u8>> {
        let message = OutboundPlainMessage {
            typ,
            version: ProtocolVersion::TLSv1_3,
            payload,
        };
        let sealed = self.sealer.encrypt(message, self.sent).map_err(general)?;
        self.sent += 1;
        Ok(sealed.encode())
    }
}

fn internal(error: Error) -> Bad {
    Bad {
        alert: AlertDescription::InternalError,
        error: general(error),
    }
}

fn unexpected() -> Bad {
    bad(
        AlertDescription::UnexpectedMessage,
        "the peer sent a message of TLS that has no place here",
    )
}

fn take_alert(payload: &[u8]) -> Result<Content<'static>, Bad> {
    let [_, alert] = *payload else {
        return Err(bad(
            AlertDescription::DecodeError,
            "the peer sent an alert that is none",
        ));
    };
    match AlertDescription::from(alert) {
        AlertDescription::CloseNotify => Ok(Content::Closed),
        alert => Err(Bad {
            // Who has ended the connection is told nothing more.
            alert: AlertDescription::CloseNotify,
            error: io::Error::new(io::ErrorKind::ConnectionAborted, words::of_alert(alert)),
        }),
    }
}

fn sealer(
    suite: &Tls13CipherSuite,
    secrets: ConnectionTrafficSecrets,
) -> io::Result<Box<dyn MessageEncrypter>> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            Ok(suite.aead_alg.encrypter(key, iv))
        }
        _ => Err(unknown_cipher()),
    }
}

fn opener(
    suite: &Tls13CipherSuite,
    secrets: ConnectionTrafficSecrets,
) -> io::Result<Box<dyn MessageDecrypter>> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            Ok(suite.aead_alg.decrypter(key, iv))
        }
        _ => Err(unknown_cipher()),
    }
}

fn unknown_cipher() -> io::Error {
    io::Error::other("a cipher that is not known")
}
