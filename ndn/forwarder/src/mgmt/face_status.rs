//! What the faces datasets say of a face.

use super::dataset::Dataset;
use super::element::{each, put, put_nested, put_some, put_text, text};
use super::parameters::{FLAG_CONGESTION_MARKING, FLAG_LOCAL_FIELDS, persistency_number};
use super::types;
use crate::face::{FaceCounters, FaceId, FaceScope, FaceSpec, LinkType};
use bytes::BytesMut;
use ndn_packet::DecodeError;
use ndn_packet::tlv::Element;

/// Packets in and out, of a face or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Interests received.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Interests dropped at a bound of the PIT (this forwarder only, as all that follow).
    pub dropped_pit_full: u64,
    /// Packets dropped for their scope.
    pub dropped_scope: u64,
    /// Interests dropped for their hop limit.
    pub dropped_hop_limit: u64,
    /// Interests dropped as loops.
    pub dropped_loop: u64,
    /// Data dropped because nobody asked for it.
    pub dropped_unsolicited: u64,
    /// Packets not sent because too many waited already to be handed to their faces.
    pub dropped_outputs_full: u64,
}

impl From<&FaceCounters> for PacketCounters {
    fn from(c: &FaceCounters) -> Self {
        PacketCounters {
            in_interests: c.in_interests,
            in_data: c.in_data,
            in_nacks: c.in_nacks,
            out_interests: c.out_interests,
            out_data: c.out_data,
            out_nacks: c.out_nacks,
            dropped_pit_full: c.dropped_pit_full,
            dropped_scope: c.dropped_scope,
            dropped_hop_limit: c.dropped_hop_limit,
            dropped_loop: c.dropped_loop,
            dropped_unsolicited: c.dropped_unsolicited,
            dropped_outputs_full: c.dropped_outputs_full,
        }
    }
}

impl PacketCounters {
    pub(super) fn put(&self, buf: &mut BytesMut) {
        put(buf, types::N_IN_INTERESTS, self.in_interests);
        put(buf, types::N_IN_DATA, self.in_data);
        put(buf, types::N_IN_NACKS, self.in_nacks);
        put(buf, types::N_OUT_INTERESTS, self.out_interests);
        put(buf, types::N_OUT_DATA, self.out_data);
        put(buf, types::N_OUT_NACKS, self.out_nacks);
    }

    /// Writes what NFD does not have; comes last in its element.
    pub(super) fn put_dropped(&self, buf: &mut BytesMut) {
        put(buf, types::N_DROPPED_PIT_FULL, self.dropped_pit_full);
        put(buf, types::N_DROPPED_SCOPE, self.dropped_scope);
        put(buf, types::N_DROPPED_HOP_LIMIT, self.dropped_hop_limit);
        put(buf, types::N_DROPPED_LOOP, self.dropped_loop);
        put(buf, types::N_DROPPED_UNSOLICITED, self.dropped_unsolicited);
        put(
            buf,
            types::N_DROPPED_OUTPUTS_FULL,
            self.dropped_outputs_full,
        );
    }

    /// Takes a counter; false when the element is none.
    pub(super) fn take(&mut self, e: &Element<'_>) -> Result<bool, DecodeError> {
        let counter = match e.typ {
            types::N_IN_INTERESTS => &mut self.in_interests,
            types::N_IN_DATA => &mut self.in_data,
            types::N_IN_NACKS => &mut self.in_nacks,
            types::N_OUT_INTERESTS => &mut self.out_interests,
            types::N_OUT_DATA => &mut self.out_data,
            types::N_OUT_NACKS => &mut self.out_nacks,
            types::N_DROPPED_PIT_FULL => &mut self.dropped_pit_full,
            types::N_DROPPED_SCOPE => &mut self.dropped_scope,
            types::N_DROPPED_HOP_LIMIT => &mut self.dropped_hop_limit,
            types::N_DROPPED_LOOP => &mut self.dropped_loop,
            types::N_DROPPED_UNSOLICITED => &mut self.dropped_unsolicited,
            types::N_DROPPED_OUTPUTS_FULL => &mut self.dropped_outputs_full,
            _ => return Ok(false),
        };
        *counter = e.nonneg()?;
        Ok(true)
    }
}

fn scope_number(scope: FaceScope) -> u64 {
    match scope {
        FaceScope::NonLocal => 0,
        FaceScope::Local => 1,
    }
}

fn link_type_number(link_type: LinkType) -> u64 {
    match link_type {
        LinkType::PointToPoint => 0,
        LinkType::MultiAccess => 1,
        LinkType::AdHoc => 2,
    }
}

pub(crate) fn flags(spec: &FaceSpec) -> u64 {
    let local_fields = if spec.local_fields {
        FLAG_LOCAL_FIELDS
    } else {
        0
    };
    let marking = if spec.congestion_marking {
        FLAG_CONGESTION_MARKING
    } else {
        0
    };
    local_fields | marking
}

/// An entry of `faces/list` and `faces/query`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceStatus {
    /// Number.
    pub face_id: u64,
    /// Other end.
    pub uri: String,
    /// This end.
    pub local_uri: String,
    /// When it goes if nothing comes, milliseconds from now.
    pub expires_ms: Option<u64>,
    /// 0 another host, 1 this host.
    pub scope: u64,
    /// 0 ends by an error, 1 also by idleness, 2 by neither.
    pub persistency: u64,
    /// 0 point to point, 1 multi-access, 2 ad hoc.
    pub link_type: u64,
    /// First interval of congestion marking, nanoseconds.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Queue length from which congestion is marked, bytes.
    pub default_congestion_threshold: Option<u64>,
    /// Greatest packet in one piece, bytes.
    pub mtu: Option<u64>,
    /// Packets in and out.
    pub packets: PacketCounters,
    /// Bytes received.
    pub in_bytes: u64,
    /// Bytes sent.
    pub out_bytes: u64,
    /// Bit 0 local fields, bit 1 reliability, bit 2 congestion marking.
    pub flags: u64,
    /// Data from the face that a downstream has rejected since (this forwarder only).
    pub rejected: Option<u64>,
    /// Pending Interests that the face waits for (this forwarder only).
    pub pending_in: u64,
    /// Pending Interests that the face was asked (this forwarder only).
    pub pending_out: u64,
    /// Names that the other end has proven to have, by its certificate (this forwarder only).
    pub peer_names: Vec<String>,
}

impl FaceStatus {
    pub(crate) fn new(id: FaceId, spec: &FaceSpec, counters: &FaceCounters) -> Self {
        FaceStatus {
            face_id: id.0,
            uri: spec.remote_uri.clone(),
            local_uri: spec.local_uri.clone(),
            expires_ms: None,
            scope: scope_number(spec.scope),
            persistency: persistency_number(spec.persistency),
            link_type: link_type_number(spec.link_type),
            base_congestion_marking_interval_ns: spec.base_congestion_marking_interval_ns,
            default_congestion_threshold: spec.default_congestion_threshold,
            mtu: spec.mtu,
            packets: counters.into(),
            in_bytes: counters.in_bytes,
            out_bytes: counters.out_bytes,
            flags: flags(spec),
            rejected: Some(counters.rejected),
            pending_in: counters.pending_in,
            pending_out: counters.pending_out,
            peer_names: spec.peer_names.clone(),
        }
    }
}

impl Dataset for FaceStatus {
    const NAME: &'static str = "faces/list";

    fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, types::ENTRY, |buf| {
            put(buf, types::FACE_ID, self.face_id);
            put_text(buf, types::URI, &self.uri);
            put_text(buf, types::LOCAL_URI, &self.local_uri);
            put_some(buf, types::EXPIRATION_PERIOD, self.expires_ms);
            put(buf, types::FACE_SCOPE, self.scope);
            put(buf, types::FACE_PERSISTENCY, self.persistency);
            put(buf, types::LINK_TYPE, self.link_type);
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
            self.packets.put(buf);
            put(buf, types::N_IN_BYTES, self.in_bytes);
            put(buf, types::N_OUT_BYTES, self.out_bytes);
            put(buf, types::FLAGS, self.flags);
            self.packets.put_dropped(buf);
            put_some(buf, types::N_REJECTED, self.rejected);
            put(buf, types::N_PENDING_IN, self.pending_in);
            put(buf, types::N_PENDING_OUT, self.pending_out);
            for name in &self.peer_names {
                put_text(buf, types::PEER_NAME, name);
            }
        });
    }

    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut face = FaceStatus::default();
        each(value, |e| {
            if face.packets.take(&e)? {
                return Ok(());
            }
            match e.typ {
                types::FACE_ID => face.face_id = e.nonneg()?,
                types::URI => face.uri = text(e.value),
                types::LOCAL_URI => face.local_uri = text(e.value),
                types::EXPIRATION_PERIOD => face.expires_ms = Some(e.nonneg()?),
                types::FACE_SCOPE => face.scope = e.nonneg()?,
                types::FACE_PERSISTENCY => face.persistency = e.nonneg()?,
                types::LINK_TYPE => face.link_type = e.nonneg()?,
                types::BASE_CONGESTION_MARKING_INTERVAL => {
                    face.base_congestion_marking_interval_ns = Some(e.nonneg()?);
                }
                types::DEFAULT_CONGESTION_THRESHOLD => {
                    face.default_congestion_threshold = Some(e.nonneg()?)
                }
                types::MTU => face.mtu = Some(e.nonneg()?),
                types::N_IN_BYTES => face.in_bytes = e.nonneg()?,
                types::N_OUT_BYTES => face.out_bytes = e.nonneg()?,
                types::FLAGS => face.flags = e.nonneg()?,
                types::N_REJECTED => face.rejected = Some(e.nonneg()?),
                types::N_PENDING_IN => face.pending_in = e.nonneg()?,
                types::N_PENDING_OUT => face.pending_out = e.nonneg()?,
                types::PEER_NAME => face.peer_names.push(text(e.value)),
                _ => {}
            }
            Ok(())
        })?;
        Ok(face)
    }
}
