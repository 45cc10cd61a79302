//! ControlParameters and ControlResponse.

use super::element::{
    each, name, nested_name, put_nested, put_nested_name, put_some, put_text, text, value_of,
};
use super::types;
use crate::face::FacePersistency;
use crate::output::UpdateFace;
use bytes::{Bytes, BytesMut};
use ndn_packet::tlv::types as packet;
use ndn_packet::{DecodeError, Name};

/// Bit of a face's flags: local fields are enabled.
pub const FLAG_LOCAL_FIELDS: u64 = 1;
/// Bit of a face's flags: lost packets are sent again on the link (NDNLPv2 reliability). This forwarder does not.
pub const FLAG_LP_RELIABILITY: u64 = 2;
/// Bit of a face's flags: congestion is marked.
pub const FLAG_CONGESTION_MARKING: u64 = 4;

/// What a command asks for, or what its answer says was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlParameters {
    /// A prefix.
    pub name: Option<Name>,
    /// Number of a face.
    pub face_id: Option<u64>,
    /// Other end of a face.
    pub uri: Option<String>,
    /// This end of a face.
    pub local_uri: Option<String>,
    /// Who made a route.
    pub origin: Option<u64>,
    /// Cost of a route.
    pub cost: Option<u64>,
    /// Capacity of the content store: bytes here, packets in NFD.
    pub capacity: Option<u64>,
    /// A number of packets.
    pub count: Option<u64>,
    /// Flags of a face, a route or the content store.
    pub flags: Option<u64>,
    /// Which of the flags are to change.
    pub mask: Option<u64>,
    /// Name of a strategy.
    pub strategy: Option<Name>,
    /// When a route ends, milliseconds from now.
    pub expiration_ms: Option<u64>,
    /// What ends a face: 0 an error, 1 also idleness, 2 nothing.
    pub persistency: Option<u64>,
    /// First interval of congestion marking, nanoseconds.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Queue length from which congestion is marked, bytes.
    pub default_congestion_threshold: Option<u64>,
    /// Greatest packet in one piece, bytes.
    pub mtu: Option<u64>,
}

impl ControlParameters {
    /// The whole element, as it stands in a command's name.
    pub fn encode(&self) -> Bytes {
        let mut buf = BytesMut::new();
        self.put(&mut buf);
        buf.freeze()
    }

    pub(super) fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, types::CONTROL_PARAMETERS, |buf| {
            if let Some(name) = &self.name {
                name.encode(buf);
            }
            put_some(buf, types::FACE_ID, self.face_id);
            if let Some(uri) = &self.uri {
                put_text(buf, types::URI, uri);
            }
            if let Some(uri) = &self.local_uri {
                put_text(buf, types::LOCAL_URI, uri);
            }
            put_some(buf, types::ORIGIN, self.origin);
            put_some(buf, types::COST, self.cost);
            put_some(buf, types::CAPACITY, self.capacity);
            put_some(buf, types::COUNT, self.count);
            put_some(buf, types::FLAGS, self.flags);
            put_some(buf, types::MASK, self.mask);
            if let Some(strategy) = &self.strategy {
                put_nested_name(buf, types::STRATEGY, strategy);
            }
            put_some(buf, types::EXPIRATION_PERIOD, self.expiration_ms);
            put_some(buf, types::FACE_PERSISTENCY, self.persistency);
            put_some(
                buf,
                types::BASE_CONGESTION_MARKING_INTERVAL,
                self.base_congestion_marking_interval_ns,
            );
            put_some(
                buf,
                types::DEFAULT_CONGESTION_THRESHOLD,
                self.default_congestion_threshold,
            );
            put_some(buf, types::MTU, self.mtu);
        });
    }

    /// Reads the whole element; unknown fields are passed over.
    ///
    /// # Errors
    /// When it is no ControlParameters, or a field is malformed.
    pub fn decode(element: &[u8]) -> Result<Self, DecodeError> {
        Self::from_value(value_of(
            element,
            types::CONTROL_PARAMETERS,
            "ControlParameters",
        )?)
    }

    fn from_value(value: &[u8]) -> Result<Self, DecodeError> {
        let mut p = ControlParameters::default();
        each(value, |e| {
            let number = match e.typ {
                packet::NAME => {
                    p.name = Some(name(e.value)?);
                    return Ok(());
                }
                types::STRATEGY => {
                    p.strategy = Some(nested_name(e.value)?);
                    return Ok(());
                }
                types::URI => {
                    p.uri = Some(text(e.value));
                    return Ok(());
                }
                types::LOCAL_URI => {
                    p.local_uri = Some(text(e.value));
                    return Ok(());
                }
                types::FACE_ID => &mut p.face_id,
                types::ORIGIN => &mut p.origin,
                types::COST => &mut p.cost,
                types::CAPACITY => &mut p.capacity,
                types::COUNT => &mut p.count,
                types::FLAGS => &mut p.flags,
                types::MASK => &mut p.mask,
                types::EXPIRATION_PERIOD => &mut p.expiration_ms,
                types::FACE_PERSISTENCY => &mut p.persistency,
                types::BASE_CONGESTION_MARKING_INTERVAL => {
                    &mut p.base_congestion_marking_interval_ns
                }
                types::DEFAULT_CONGESTION_THRESHOLD => &mut p.default_congestion_threshold,
                types::MTU => &mut p.mtu,
                _ => return Ok(()),
            };
            *number = Some(e.nonneg()?);
            Ok(())
        })?;
        Ok(p)
    }

    /// What the flags and mask say of one bit, if anything.
    pub fn flag(&self, bit: u64) -> Option<bool> {
        (self.mask? & bit != 0).then_some(self.flags? & bit != 0)
    }

    /// Whether there are flags without a mask or the other way around.
    pub(crate) fn has_flags_without_mask(&self) -> bool {
        self.flags.is_some() != self.mask.is_some()
    }

    /// What of this changes a face.
    pub(crate) fn update(&self, face: crate::FaceId) -> UpdateFace {
        UpdateFace {
            face,
            persistency: self.persistency.and_then(persistency),
            mtu: self.mtu,
            congestion_marking: self.flag(FLAG_CONGESTION_MARKING),
            base_congestion_marking_interval_ns: self.base_congestion_marking_interval_ns,
            default_congestion_threshold: self.default_congestion_threshold,
        }
    }
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlResponse {
    /// Like an HTTP status: 200 is success.
    pub code: u64,
    /// What went wrong, or `OK`.
    pub text: String,
    /// What was done, or what is wrong with what was asked.
    pub body: ControlParameters,
}

impl ControlResponse {
    /// Success.
    pub fn ok(body: ControlParameters) -> Self {
        ControlResponse {
            code: 200,
            text: "OK".to_owned(),
            body,
        }
    }

    /// Refusal.
    pub fn error(code: u64, text: impl Into<String>) -> Self {
        ControlResponse {
            code,
            text: text.into(),
            body: ControlParameters::default(),
        }
    }

    /// The content of the Data that answers a command.
    pub fn encode(&self) -> Bytes {
        let mut buf = BytesMut::new();
        put_nested(&mut buf, types::CONTROL_RESPONSE, |buf| {
            put_some(buf, types::STATUS_CODE, Some(self.code));
            put_text(buf, types::STATUS_TEXT, &self.text);
            if self.body != ControlParameters::default() {
                self.body.put(buf);
            }
        });
        buf.freeze()
    }

    /// Reads the content of the Data that answers a command.
    ///
    /// # Errors
    /// When it is no ControlResponse, or a field is malformed.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let (mut code, mut said, mut body) = (None, String::new(), ControlParameters::default());
        each(
            value_of(content, types::CONTROL_RESPONSE, "ControlResponse")?,
            |e| {
                match e.typ {
                    types::STATUS_CODE => code = Some(e.nonneg()?),
                    types::STATUS_TEXT => said = text(e.value),
                    types::CONTROL_PARAMETERS => body = ControlParameters::from_value(e.value)?,
                    _ => {}
                }
                Ok(())
            },
        )?;
        Ok(ControlResponse {
            code: code.ok_or(DecodeError::Missing("StatusCode"))?,
            text: said,
            body,
        })
    }
}

pub(crate) fn persistency(number: u64) -> Option<FacePersistency> {
    match number {
        0 => Some(FacePersistency::Persistent),
        1 => Some(FacePersistency::OnDemand),
        2 => Some(FacePersistency::Permanent),
        _ => None,
    }
}

pub(crate) fn persistency_number(persistency: FacePersistency) -> u64 {
    match persistency {
        FacePersistency::Persistent => 0,
        FacePersistency::OnDemand => 1,
        FacePersistency::Permanent => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_around() {
        let all = ControlParameters {
            name: Some("/a/b".parse().unwrap()),
            face_id: Some(256),
            uri: Some("udp4://192.0.2.1:6363".into()),
            local_uri: Some("udp4://192.0.2.2:6363".into()),
            origin: Some(255),
            cost: Some(100),
            capacity: Some(1 << 33),
            count: Some(1),
            flags: Some(3),
            mask: Some(3),
            strategy: Some("/localhost/nfd/strategy/multicast".parse().unwrap()),
            expiration_ms: Some(60_000),
            persistency: Some(2),
            base_congestion_marking_interval_ns: Some(100_000_000),
            default_congestion_threshold: Some(65_536),
            mtu: Some(1400),
        };
        assert_eq!(ControlParameters::decode(&all.encode()), Ok(all.clone()));
        let response = ControlResponse {
            code: 409,
            text: "Face exists".into(),
            body: all,
        };
        assert_eq!(ControlResponse::decode(&response.encode()), Ok(response));
        assert!(ControlResponse::decode(&ControlParameters::default().encode()).is_err());
    }

    /// The response that ndn-cxx's tests have for rib/register of `/localhost/nfd`-style parameters.
    #[test]
    fn bytes_are_those_of_the_specification() {
        let parameters = ControlParameters {
            name: Some("/ndn".parse().unwrap()),
            face_id: Some(22),
            cost: Some(6),
            ..Default::default()
        };
        assert_eq!(
            &parameters.encode()[..],
            b"\x68\x0d\x07\x05\x08\x03ndn\x69\x01\x16\x6a\x01\x06"
        );
        let response = ControlResponse::error(404, "Nothing not found");
        assert_eq!(
            &response.encode()[..],
            b"\x65\x17\x66\x02\x01\x94\x67\x11Nothing not found"
        );
    }

    #[test]
    fn flags_count_only_under_the_mask() {
        let p = ControlParameters {
            flags: Some(5),
            mask: Some(3),
            ..Default::default()
        };
        assert_eq!(
            (p.flag(1), p.flag(2), p.flag(4)),
            (Some(true), Some(false), None)
        );
        assert!(
            ControlParameters {
                flags: Some(1),
                ..Default::default()
            }
            .has_flags_without_mask()
        );
    }
}
