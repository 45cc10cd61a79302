//! Parameters of commands and the responses to them.
//!
//! Source: named-data.net, repo-ng wiki, "Repo Command". What is sent here is as that page has it. What is accepted is
//! more: repo-ng's own programs and those after them don't agree, so parameters may come with or without their outer
//! element, and responses inside NFD's ControlResponse.
//!
//! | type | element |
//! |---|---|
//! | 201 | RepoCommandParameter: Name? StartBlockId? EndBlockId? ProcessId? InterestLifetime? |
//! | 204, 205, 206 | StartBlockId, EndBlockId, ProcessId |
//! | 207 | RepoCommandResponse: ProcessId? StatusCode StartBlockId? EndBlockId? InsertNum? DeleteNum? |
//! | 208, 209, 210 | StatusCode, InsertNum, DeleteNum |

use bytes::{Bytes, BytesMut};
use ndn_packet::tlv::{self, Reader, types};
use ndn_packet::{DecodeError, Name, NameRef};

const PARAMETER: u32 = 201;
const START_BLOCK_ID: u32 = 204;
const END_BLOCK_ID: u32 = 205;
const PROCESS_ID: u32 = 206;
const RESPONSE: u32 = 207;
const STATUS_CODE: u32 = 208;
const INSERT_NUM: u32 = 209;
const DELETE_NUM: u32 = 210;
/// NFD's ControlResponse.
const CONTROL_RESPONSE: u32 = 101;

/// Status codes of responses.
pub mod status {
    /// The command is taken; what it began goes on.
    pub const BEGUN: u64 = 100;
    /// All is done.
    pub const DONE: u64 = 200;
    /// The insertion goes on.
    pub const GOES_ON: u64 = 300;
    /// Not signed, not by a key that may, or seen before.
    pub const UNAUTHORIZED: u64 = 401;
    /// The command can't be understood.
    pub const MALFORMED: u64 = 403;
    /// There is no such insertion.
    pub const NO_SUCH_PROCESS: u64 = 404;
    /// The end was not reached: the producer stalled, or there was more than may be inserted.
    pub const NO_END: u64 = 405;
    /// The producer sent what the repository does not believe. (Trunkline's own.)
    pub const UNTRUSTED_DATA: u64 = 406;
    /// The repository could not keep it: its disk is full or failing. (Trunkline's own.)
    pub const FAILED: u64 = 500;
    /// Too many insertions go on. (Trunkline's own.)
    pub const BUSY: u64 = 503;
}

/// What a command is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Prefix of segments, or a packet's name.
    pub name: Option<Name>,
    /// The first segment.
    pub start: Option<u64>,
    /// The last segment.
    pub end: Option<u64>,
    /// An insertion that goes on.
    pub process: Option<u64>,
    /// Lifetime of the Interests that fetch, in milliseconds.
    pub lifetime_ms: Option<u64>,
}

impl Parameters {
    /// The outer element and all in it.
    pub fn encode(&self) -> Bytes {
        let mut inner = BytesMut::new();
        if let Some(name) = &self.name {
            name.encode(&mut inner);
        }
        for (typ, value) in [
            (types::INTEREST_LIFETIME, self.lifetime_ms),
            (START_BLOCK_ID, self.start),
            (END_BLOCK_ID, self.end),
            (PROCESS_ID, self.process),
        ] {
            if let Some(value) = value {
                tlv::write_nonneg_tlv(&mut inner, typ, value);
            }
        }
        let mut bytes = BytesMut::with_capacity(inner.len() + 4);
        tlv::write_tlv(&mut bytes, PARAMETER, &inner);
        bytes.freeze()
    }

    /// Reads parameters, with or without the outer element, in any order.
    ///
    /// # Errors
    /// [`DecodeError`] when an element is malformed or a critical one unknown.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let inner = match Reader::new(bytes).next()? {
            Some(outer) if outer.typ == PARAMETER && outer.end == bytes.len() => outer.value,
            _ => bytes,
        };
        let mut parameters = Self::default();
        let mut reader = Reader::new(inner);
        while let Some(element) = reader.next()? {
            let field = match element.typ {
                types::NAME => {
                    parameters.name = Some(NameRef::from_value(element.value)?.to_name());
                    continue;
                }
                START_BLOCK_ID => &mut parameters.start,
                END_BLOCK_ID => &mut parameters.end,
                PROCESS_ID => &mut parameters.process,
                types::INTEREST_LIFETIME => &mut parameters.lifetime_ms,
                // Fetching goes where routes lead.
                types::FORWARDING_HINT => continue,
                typ if tlv::is_critical(typ) => return Err(DecodeError::UnknownCritical(typ)),
                _ => continue,
            };
            *field = Some(element.nonneg()?);
        }
        Ok(parameters)
    }
}

/// What became of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Response {
    /// The insertion that was begun, or asked about.
    pub process: Option<u64>,
    /// One of [`status`].
    pub status: u64,
    /// The first segment.
    pub start: Option<u64>,
    /// The last segment.
    pub end: Option<u64>,
    /// Packets inserted so far.
    pub inserted: Option<u64>,
    /// Packets deleted.
    pub deleted: Option<u64>,
}

impl Response {
    /// A response that tells a status alone.
    pub fn of(status: u64) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// The outer element and all in it.
    pub fn encode(&self) -> Bytes {
        let mut inner = BytesMut::new();
        for (typ, value) in [
            (PROCESS_ID, self.process),
            (STATUS_CODE, Some(self.status)),
            (START_BLOCK_ID, self.start),
            (END_BLOCK_ID, self.end),
            (INSERT_NUM, self.inserted),
            (DELETE_NUM, self.deleted),
        ] {
            if let Some(value) = value {
                tlv::write_nonneg_tlv(&mut inner, typ, value);
            }
        }
        let mut bytes = BytesMut::with_capacity(inner.len() + 4);
        tlv::write_tlv(&mut bytes, RESPONSE, &inner);
        bytes.freeze()
    }

    /// Reads a response, by itself or inside a ControlResponse.
    ///
    /// # Errors
    /// [`DecodeError`] when there is none, or it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        while let Some(element) = reader.next()? {
            match element.typ {
                RESPONSE => return Self::decode_inner(element.value),
                CONTROL_RESPONSE => reader = Reader::new(element.value),
                _ => {}
            }
        }
        Err(DecodeError::Missing("RepoCommandResponse"))
    }

    fn decode_inner(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut response = Self::default();
        let mut status = None;
        let mut reader = Reader::new(bytes);
        while let Some(element) = reader.next()? {
            let field = match element.typ {
                PROCESS_ID => &mut response.process,
                STATUS_CODE => &mut status,
                START_BLOCK_ID => &mut response.start,
                END_BLOCK_ID => &mut response.end,
                INSERT_NUM => &mut response.inserted,
                DELETE_NUM => &mut response.deleted,
                _ => continue,
            };
            *field = Some(element.nonneg()?);
        }
        response.status = status.ok_or(DecodeError::Missing("StatusCode"))?;
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_are_as_the_protocol_page_has_them() {
        let parameters = Parameters {
            name: Some("/a".parse().expect("a name")),
            start: Some(0),
            end: Some(300),
            process: None,
            lifetime_ms: None,
        };
        let wire = parameters.encode();
        assert_eq!(
            &wire[..],
            [201, 12, 7, 3, 8, 1, b'a', 204, 1, 0, 205, 2, 1, 44]
        );
        assert_eq!(Parameters::decode(&wire), Ok(parameters.clone()));
        assert_eq!(
            Parameters::decode(&wire[2..]),
            Ok(parameters),
            "without the outer element"
        );
    }

    #[test]
    fn a_response_is_found_inside_nfds() {
        let response = Response {
            process: Some(7),
            inserted: Some(0),
            ..Response::of(status::BEGUN)
        };
        let wire = response.encode();
        assert_eq!(&wire[..], [207, 9, 206, 1, 7, 208, 1, 100, 209, 1, 0]);
        assert_eq!(Response::decode(&wire), Ok(response));
        let mut body = vec![102, 1, 100, 103, 2, b'O', b'K'];
        body.extend_from_slice(&wire);
        let mut wrapped = vec![101, body.len() as u8];
        wrapped.extend_from_slice(&body);
        assert_eq!(Response::decode(&wrapped), Ok(response));
        assert!(Response::decode(&[207, 3, 206, 1, 7]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            let _ = Parameters::decode(&bytes);
            let _ = Response::decode(&bytes);
        }

        #[test]
        fn parameters_go_round(start: Option<u64>, end: Option<u64>, process: Option<u64>, lifetime_ms: Option<u64>) {
            let parameters = Parameters { name: None, start, end, process, lifetime_ms };
            prop_assert_eq!(Parameters::decode(&parameters.encode()), Ok(parameters));
        }
    }
}
