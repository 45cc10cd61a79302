//! Datasets that are lists of entries, and CsInfo.

use super::element::{
    each, name, nested_name, put, put_nested, put_nested_name, put_some, put_text, text,
};
use super::types;
use bytes::BytesMut;
use ndn_packet::tlv::types as packet;
use ndn_packet::{DecodeError, Name};

/// An entry of a dataset; the dataset's content is a sequence of them.
pub trait Dataset: Sized {
    /// Name of the dataset under `/localhost/nfd`, without its leading slash.
    const NAME: &'static str;
    /// TLV type of an entry.
    const TYPE: u32 = types::ENTRY;

    /// Writes the whole entry.
    fn put(&self, buf: &mut BytesMut);

    /// Reads an entry from its TLV-VALUE; unknown fields are passed over.
    ///
    /// # Errors
    /// When a field is malformed, or one that must be there is missing.
    fn decode(value: &[u8]) -> Result<Self, DecodeError>;

    /// Reads a whole dataset, its segments joined.
    ///
    /// # Errors
    /// As [`Dataset::decode`].
    fn decode_all(content: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut entries = Vec::new();
        each(content, |e| {
            if e.typ == Self::TYPE {
                entries.push(Self::decode(e.value)?);
            }
            Ok(())
        })?;
        Ok(entries)
    }
}

/// An entry of `faces/channels`: a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStatus {
    /// Where it listens.
    pub local_uri: String,
}

impl Dataset for ChannelStatus {
    const NAME: &'static str = "faces/channels";
    const TYPE: u32 = types::CHANNEL_STATUS;

    fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, Self::TYPE, |buf| {
            put_text(buf, types::LOCAL_URI, &self.local_uri)
        });
    }

    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut local_uri = None;
        each(value, |e| {
            if e.typ == types::LOCAL_URI {
                local_uri = Some(text(e.value));
            }
            Ok(())
        })?;
        Ok(ChannelStatus {
            local_uri: local_uri.ok_or(DecodeError::Missing("LocalUri"))?,
        })
    }
}

/// A next hop of a [`FibEntry`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextHopRecord {
    /// Face.
    pub face_id: u64,
    /// Cost.
    pub cost: u64,
}

/// An entry of `fib/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FibEntry {
    /// Prefix.
    pub prefix: Name,
    /// Next hops, the cheapest first.
    pub next_hops: Vec<NextHopRecord>,
}

impl Dataset for FibEntry {
    const NAME: &'static str = "fib/list";

    fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, Self::TYPE, |buf| {
            self.prefix.encode(buf);
            for hop in &self.next_hops {
                put_nested(buf, types::INNER, |buf| {
                    put(buf, types::FACE_ID, hop.face_id);
                    put(buf, types::COST, hop.cost);
                });
            }
        });
    }

    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (mut prefix, mut next_hops) = (None, Vec::new());
        each(value, |e| {
            match e.typ {
                packet::NAME => prefix = Some(name(e.value)?),
                types::INNER => {
                    let mut hop = NextHopRecord::default();
                    each(e.value, |e| {
                        match e.typ {
                            types::FACE_ID => hop.face_id = e.nonneg()?,
                            types::COST => hop.cost = e.nonneg()?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    next_hops.push(hop);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(FibEntry {
            prefix: prefix.ok_or(DecodeError::Missing("Name"))?,
            next_hops,
        })
    }
}

/// A route of a [`RibEntry`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Route {
    /// Face it leads to.
    pub face_id: u64,
    /// Who made it.
    pub origin: u64,
    /// Cost.
    pub cost: u64,
    /// Bit 0 child-inherit, bit 1 capture.
    pub flags: u64,
    /// When it ends, milliseconds from now.
    pub expires_ms: Option<u64>,
}

/// An entry of `rib/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RibEntry {
    /// Prefix.
    pub prefix: Name,
    /// Routes.
    pub routes: Vec<Route>,
}

impl Dataset for RibEntry {
    const NAME: &'static str = "rib/list";

    fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, Self::TYPE, |buf| {
            self.prefix.encode(buf);
            for route in &self.routes {
                put_nested(buf, types::INNER, |buf| {
                    put(buf, types::FACE_ID, route.face_id);
                    put(buf, types::ORIGIN, route.origin);
                    put(buf, types::COST, route.cost);
                    put(buf, types::FLAGS, route.flags);
                    put_some(buf, types::EXPIRATION_PERIOD, route.expires_ms);
                });
            }
        });
    }

    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (mut prefix, mut routes) = (None, Vec::new());
        each(value, |e| {
            match e.typ {
                packet::NAME => prefix = Some(name(e.value)?),
                types::INNER => {
                    let mut route = Route::default();
                    each(e.value, |e| {
                        match e.typ {
                            types::FACE_ID => route.face_id = e.nonneg()?,
                            types::ORIGIN => route.origin = e.nonneg()?,
                            types::COST => route.cost = e.nonneg()?,
                            types::FLAGS => route.flags = e.nonneg()?,
                            types::EXPIRATION_PERIOD => route.expires_ms = Some(e.nonneg()?),
                            _ => {}
                        }
                        Ok(())
                    })?;
                    routes.push(route);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(RibEntry {
            prefix: prefix.ok_or(DecodeError::Missing("Name"))?,
            routes,
        })
    }
}

/// An entry of `strategy-choice/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyChoice {
    /// Prefix.
    pub prefix: Name,
    /// Name of the strategy.
    pub strategy: Name,
}

impl Dataset for StrategyChoice {
    const NAME: &'static str = "strategy-choice/list";

    fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, Self::TYPE, |buf| {
            self.prefix.encode(buf);
            put_nested_name(buf, types::STRATEGY, &self.strategy);
        });
    }

    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (mut prefix, mut strategy) = (None, None);
        each(value, |e| {
            match e.typ {
                packet::NAME => prefix = Some(name(e.value)?),
                types::STRATEGY => strategy = Some(nested_name(e.value)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(StrategyChoice {
            prefix: prefix.ok_or(DecodeError::Missing("Name"))?,
            strategy: strategy.ok_or(DecodeError::Missing("Strategy"))?,
        })
    }
}

/// The one entry of `cs/info`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CsInfo {
    /// Capacity: bytes here, packets in NFD.
    pub capacity: u64,
    /// Bit 0 admits new Data, bit 1 answers Interests.
    pub flags: u64,
    /// Packets held.
    pub entries: u64,
    /// Interests answered.
    pub hits: u64,
    /// Interests not answered.
    pub misses: u64,
    /// Bytes in use (this forwarder only).
    pub bytes: Option<u64>,
}

impl Dataset for CsInfo {
    const NAME: &'static str = "cs/info";

    fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, Self::TYPE, |buf| {
            put(buf, types::CAPACITY, self.capacity);
            put(buf, types::FLAGS, self.flags);
            put(buf, types::N_CS_ENTRIES, self.entries);
            put(buf, types::N_HITS, self.hits);
            put(buf, types::N_MISSES, self.misses);
            put_some(buf, types::N_CS_BYTES, self.bytes);
        });
    }

    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut info = CsInfo::default();
        each(value, |e| {
            match e.typ {
                types::CAPACITY => info.capacity = e.nonneg()?,
                types::FLAGS => info.flags = e.nonneg()?,
                types::N_CS_ENTRIES => info.entries = e.nonneg()?,
                types::N_HITS => info.hits = e.nonneg()?,
                types::N_MISSES => info.misses = e.nonneg()?,
                types::N_CS_BYTES => info.bytes = Some(e.nonneg()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(info)
    }
}
