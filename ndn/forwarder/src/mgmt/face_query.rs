//! Queries for faces, and notifications about them.

use super::dataset::Dataset;
use super::element::{each, put, put_nested, put_some, put_text, text, value_of};
use super::face_status::FaceStatus;
use super::types;
use bytes::{Bytes, BytesMut};
use ndn_packet::DecodeError;

/// Which faces `faces/query` is to list: those that fit all that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceQueryFilter {
    /// Number.
    pub face_id: Option<u64>,
    /// Scheme of the other end or of this end, like `udp4`.
    pub uri_scheme: Option<String>,
    /// Other end.
    pub uri: Option<String>,
    /// This end.
    pub local_uri: Option<String>,
    /// 0 another host, 1 this host.
    pub scope: Option<u64>,
    /// 0 ends by an error, 1 also by idleness, 2 by neither.
    pub persistency: Option<u64>,
    /// 0 point to point, 1 multi-access, 2 ad hoc.
    pub link_type: Option<u64>,
}

impl FaceQueryFilter {
    /// The whole element, as it stands in the dataset's name.
    pub fn encode(&self) -> Bytes {
        let mut buf = BytesMut::new();
        put_nested(&mut buf, types::FACE_QUERY_FILTER, |buf| {
            put_some(buf, types::FACE_ID, self.face_id);
            for (typ, text) in [
                (types::URI_SCHEME, &self.uri_scheme),
                (types::URI, &self.uri),
                (types::LOCAL_URI, &self.local_uri),
            ] {
                if let Some(text) = text {
                    put_text(buf, typ, text);
                }
            }
            put_some(buf, types::FACE_SCOPE, self.scope);
            put_some(buf, types::FACE_PERSISTENCY, self.persistency);
            put_some(buf, types::LINK_TYPE, self.link_type);
        });
        buf.freeze()
    }

    /// The whole element with a number of the caller's choice in it, which readers pass over: a query under a name that was
    /// never asked for, so that no answer is kept for it. NFD keeps those of its datasets for a second.
    pub fn encode_unlike_others(&self, number: u64) -> Bytes {
        let whole = self.encode();
        let mut buf = BytesMut::new();
        put_nested(&mut buf, types::FACE_QUERY_FILTER, |buf| {
            let fields = value_of(&whole, types::FACE_QUERY_FILTER, "FaceQueryFilter");
            buf.extend_from_slice(fields.unwrap_or_default());
            put(buf, types::QUERY_NUMBER, number);
        });
        buf.freeze()
    }

    /// Reads the whole element.
    ///
    /// # Errors
    /// When it is no FaceQueryFilter, or a field is malformed.
    pub fn decode(element: &[u8]) -> Result<Self, DecodeError> {
        let mut filter = FaceQueryFilter::default();
        each(
            value_of(element, types::FACE_QUERY_FILTER, "FaceQueryFilter")?,
            |e| {
                match e.typ {
                    types::FACE_ID => filter.face_id = Some(e.nonneg()?),
                    types::URI_SCHEME => filter.uri_scheme = Some(text(e.value)),
                    types::URI => filter.uri = Some(text(e.value)),
                    types::LOCAL_URI => filter.local_uri = Some(text(e.value)),
                    types::FACE_SCOPE => filter.scope = Some(e.nonneg()?),
                    types::FACE_PERSISTENCY => filter.persistency = Some(e.nonneg()?),
                    types::LINK_TYPE => filter.link_type = Some(e.nonneg()?),
                    _ => {}
                }
                Ok(())
            },
        )?;
        Ok(filter)
    }

    /// Whether a face fits.
    pub fn matches(&self, face: &FaceStatus) -> bool {
        fn fits<T: PartialEq>(wanted: &Option<T>, is: &T) -> bool {
            wanted.as_ref().is_none_or(|w| w == is)
        }
        let scheme = |uri: &str| uri.split("://").next().map(str::to_owned);
        let fits_scheme = self.uri_scheme.is_none()
            || self.uri_scheme == scheme(&face.uri)
            || self.uri_scheme == scheme(&face.local_uri);
        fits_scheme
            && fits(&self.face_id, &face.face_id)
            && fits(&self.uri, &face.uri)
            && fits(&self.local_uri, &face.local_uri)
            && fits(&self.scope, &face.scope)
            && fits(&self.persistency, &face.persistency)
            && fits(&self.link_type, &face.link_type)
    }
}

/// What happened to a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaceEventKind {
    /// It was added.
    Created,
    /// It is being removed.
    Destroyed,
    /// It came up.
    Up,
    /// It went down.
    Down,
}

/// A notification of `faces/events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceEvent {
    /// What happened.
    pub kind: FaceEventKind,
    /// To which face; counters and what else notifications do not tell are left out.
    pub face: FaceStatus,
}

impl FaceEvent {
    /// The content of the notification's Data.
    pub fn encode(&self) -> Bytes {
        let kind = match self.kind {
            FaceEventKind::Created => 1,
            FaceEventKind::Destroyed => 2,
            FaceEventKind::Up => 3,
            FaceEventKind::Down => 4,
        };
        let mut buf = BytesMut::new();
        put_nested(&mut buf, types::FACE_EVENT_NOTIFICATION, |buf| {
            put(buf, types::FACE_EVENT_KIND, kind);
            put(buf, types::FACE_ID, self.face.face_id);
            put_text(buf, types::URI, &self.face.uri);
            put_text(buf, types::LOCAL_URI, &self.face.local_uri);
            put(buf, types::FACE_SCOPE, self.face.scope);
            put(buf, types::FACE_PERSISTENCY, self.face.persistency);
            put(buf, types::LINK_TYPE, self.face.link_type);
            put(buf, types::FLAGS, self.face.flags);
        });
        buf.freeze()
    }

    /// Reads the content of a notification's Data.
    ///
    /// # Errors
    /// When it is no FaceEventNotification, or a field is malformed.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let value = value_of(
            content,
            types::FACE_EVENT_NOTIFICATION,
            "FaceEventNotification",
        )?;
        let mut kind = None;
        each(value, |e| {
            if e.typ == types::FACE_EVENT_KIND {
                kind = Some(match e.nonneg()? {
                    1 => FaceEventKind::Created,
                    2 => FaceEventKind::Destroyed,
                    3 => FaceEventKind::Up,
                    4 => FaceEventKind::Down,
                    _ => return Err(DecodeError::Invalid("FaceEventKind")),
                });
            }
            Ok(())
        })?;
        let kind = kind.ok_or(DecodeError::Missing("FaceEventKind"))?;
        Ok(FaceEvent {
            kind,
            face: FaceStatus::decode(value)?,
        })
    }
}
