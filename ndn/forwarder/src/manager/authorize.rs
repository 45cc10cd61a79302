//! Whether a command may be done.

use super::Manager;
use crate::mgmt::Trust;
use crate::request::Request;
use ndn_packet::tlv::{Reader, types as packet};
use ndn_packet::{Verifier, signature_type};
use std::time::Duration;

/// Components that the older form of a signed Interest adds to its name: time, nonce, SignatureInfo, SignatureValue.
const OLD_FORM: usize = 4;

impl Manager {
    /// `Err` says why not. An application of this host has to have the key for it, however it asks.
    pub(crate) fn authorize(
        &self,
        request: &Request,
        is_of_a_peer: bool,
        now: u64,
    ) -> Result<(), &'static str> {
        let peers = self.policy.localhop_rib.as_ref();
        let trust = match request.localhop {
            true if is_of_a_peer => peers,
            true => peers.map(|_| &self.policy.local),
            false => Some(&self.policy.local),
        };
        let trust = trust.ok_or("nobody may command this forwarder from here")?;
        match request.interest.signature_info() {
            Some(info) => {
                self.check_age(info.time, now)?;
                check_signature(request, info.signature_type, trust)
            }
            None => {
                let old = OldForm::read(request).ok_or("the command is not signed")?;
                self.check_age(Some(old.time_ms), now)?;
                old.check_signature(trust)
            }
        }
    }

    fn check_age(&self, time_ms: Option<u64>, now: u64) -> Result<(), &'static str> {
        let (Some(then), Some(now)) = (time_ms.map(Duration::from_millis), self.unix_time(now))
        else {
            return Ok(());
        };
        if then.abs_diff(now) <= self.policy.max_age {
            Ok(())
        } else {
            Err("the time in the signature is too far from now; are the clocks set?")
        }
    }
}

fn check_signature(request: &Request, typ: u64, trust: &Trust) -> Result<(), &'static str> {
    let interest = &request.interest;
    let good = match trust {
        Trust::Any if typ == signature_type::DIGEST_SHA256 => {
            Verifier::DigestSha256.verify_interest(interest)
        }
        Trust::Any => interest.verify_params_digest(),
        Trust::Keys(keys) => keys.iter().any(|key| key.verify_interest(interest)),
    };
    if good {
        Ok(())
    } else {
        Err("the signature is wrong, or its key is not trusted")
    }
}

/// A signed Interest as before Packet Format 0.3: the signature is in the name.
struct OldForm<'a> {
    time_ms: u64,
    signature_type: u64,
    signed: &'a [u8],
    signature: &'a [u8],
}

impl<'a> OldForm<'a> {
    fn read(request: &'a Request) -> Option<Self> {
        let name = &request.name;
        let n = name.len().checked_sub(OLD_FORM).filter(|n| *n >= 5)?;
        let time_ms = name.get(n)?.as_number()?;
        let info = element(name.get(n + 2)?.value, packet::SIGNATURE_INFO)?;
        let signature_type = Reader::new(info).next().ok()??;
        if signature_type.typ != packet::SIGNATURE_TYPE {
            return None;
        }
        let value = name.get(n + 3)?;
        let signed = &name.value()[..name.value().len() - value.wire_len()];
        Some(OldForm {
            time_ms,
            signature_type: signature_type.nonneg().ok()?,
            signed,
            signature: element(value.value, packet::SIGNATURE_VALUE)?,
        })
    }

    fn check_signature(&self, trust: &Trust) -> Result<(), &'static str> {
        let verify =
            |key: &Verifier| key.verify_pieces(self.signature_type, &[self.signed], self.signature);
        let good = match trust {
            Trust::Any if self.signature_type == signature_type::DIGEST_SHA256 => {
                verify(&Verifier::DigestSha256)
            }
            Trust::Any => true,
            Trust::Keys(keys) => keys.iter().any(verify),
        };
        if good {
            Ok(())
        } else {
            Err("the signature is wrong, or its key is not trusted")
        }
    }
}

fn element(bytes: &[u8], typ: u32) -> Option<&[u8]> {
    Reader::new(bytes)
        .next()
        .ok()?
        .filter(|e| e.typ == typ)
        .map(|e| e.value)
}
