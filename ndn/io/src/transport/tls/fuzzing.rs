//! What the fuzz target drives of the records of TLS.

use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::ring::cipher_suite::TLS13_AES_256_GCM_SHA384;
use rustls::{
    ConnectionTrafficSecrets, ContentType, Error, ExtractedSecrets, SupportedCipherSuite,
};

use super::records::{Content, MAX_RECORD, Records, Rekey, length};

/// The same keys for ever.
struct Fixed;

fn keys() -> ConnectionTrafficSecrets {
    ConnectionTrafficSecrets::Aes256Gcm {
        key: AeadKey::from([7; 32]),
        iv: Iv::from([9; 12]),
    }
}

impl Rekey for Fixed {
    fn next_sent(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        Ok((0, keys()))
    }

    fn next_received(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        Ok((0, keys()))
    }

    fn suite(&self) -> SupportedCipherSuite {
        TLS13_AES_256_GCM_SHA384
    }
}

fn end(is_client: bool) -> Records {
    let secrets = ExtractedSecrets {
        tx: (0, keys()),
        rx: (0, keys()),
    };
    Records::new(secrets, Box::new(Fixed), is_client).expect("a cipher of TLS 1.3")
}

/// Records of a peer that has the keys and seals whatever it likes, and of somebody on the way. Each: type of content, which
/// octet is changed (0: none), length, content. Data comes as it was sealed, or the connection ends.
pub(crate) fn records(bytes: &[u8]) {
    let (mut peer, mut own) = (end(false), end(true));
    let _ = length(bytes);
    let mut rest = bytes;
    while let [kind, changed, len, tail @ ..] = rest {
        let (content, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let kind = match kind % 8 {
            0..=2 => ContentType::ApplicationData,
            3 | 4 => ContentType::Handshake,
            5 => ContentType::Alert,
            _ => ContentType::from(*kind),
        };
        let mut record = peer.seal_as(kind, content.into()).expect("few records");
        assert!(record.len() <= MAX_RECORD);
        assert!(matches!(length(&record), Ok(Some(whole)) if whole == record.len()));
        let at = usize::from(*changed);
        let is_changed = at > 0 && 5 + at <= record.len();
        if is_changed {
            record[4 + at] ^= 0x20;
        }
        match own.open(&mut record) {
            Ok(Content::Data(data)) => {
                assert!(!is_changed && kind == ContentType::ApplicationData);
                assert_eq!(data, content);
            }
            Ok(Content::Message) => assert!(!is_changed),
            Ok(Content::Closed) | Err(_) => return,
        }
    }
}
