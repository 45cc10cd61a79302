//! A connection whose handshake is over: bytes of the socket into data, and data of the send queue into bytes.
//!
//! A turn of the loop is counted in bytes, and a record costs work however few are in it: what it costs beside them is
//! counted here ([`Open::take_cost`]), and much is read at once only of who fills its records.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};

use rustls::AlertDescription;
use rustls::crypto::cipher::OutboundChunks;

use super::records::{self, Bad, Content, MAX_CONTENT, MAX_RECORD, Records};
use super::wire::{Wire, closed};
use crate::face::queue::{GATHER, SendQueue};

/// Records that one write takes, at most.
pub(super) const BATCH: usize = 4;
/// Bytes read from the socket at once, at most: a turn of the loop; and where the last records were small: the smallest in
/// it are about as much work as the packets of a turn are.
const MAX_READ: usize = 256 << 10;
pub(super) const SMALL_READ: usize = 64 << 10;
/// Records with fewer bytes are small.
const SMALL_RECORD: usize = 4 << 10;
/// What a record costs beside its bytes, in bytes that could be opened meanwhile; and one with a message of TLS instead of
/// data, for which keys may have to be made.
pub(super) const RECORD_COST: usize = 512;
const MESSAGE_COST: usize = 4096;

thread_local! {
    /// Where records are opened.
    static OPENED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connection whose handshake is over.
pub(super) struct Open {
    pub records: Records,
    /// Received and not handed on: some that is opened already, and the beginning of a record. [`MAX_RECORD`] bytes at
    /// most.
    pub held: Vec<u8>,
    /// Bytes of `held` that are opened.
    opened: usize,
    /// Sealed, and not taken by the system yet; of the first one, this many bytes are.
    sealed: VecDeque<Vec<u8>>,
    written: usize,
    sealed_bytes: usize,
    /// The peer has said that it sends nothing more.
    is_over: bool,
    /// The records that were opened last had much in them.
    fills_records: bool,
    /// What the records opened since somebody last asked have cost beside their bytes.
    cost: usize,
}

impl Open {
    /// One whose peer has sent what is in `held` already, right behind the handshake.
    pub fn new(records: Records, held: Vec<u8>) -> Self {
        Self {
            records,
            held,
            opened: 0,
            sealed: VecDeque::new(),
            written: 0,
            sealed_bytes: 0,
            is_over: false,
            fills_records: false,
            cost: 0,
        }
    }

    /// Sealed bytes that the system has not taken.
    pub fn sealed_bytes(&self) -> usize {
        self.sealed_bytes
    }

    /// What the records opened since the last call have cost beside their bytes, in bytes.
    pub fn take_cost(&mut self) -> usize {
        std::mem::take(&mut self.cost)
    }

    /// Reads into `buf` what has come, opened; 0 where nothing has.
    ///
    /// # Errors
    /// The connection has ended, or the peer has sent what may not stand there.
    pub fn read(&mut self, wire: &mut Wire, buf: &mut [u8]) -> Result<usize, Bad> {
        OPENED.with_borrow_mut(|space| self.read_by(wire, space, buf))
    }

    /// The same, with `space` for the opening.
    fn read_by(
        &mut self,
        wire: &mut Wire,
        space: &mut Vec<u8>,
        buf: &mut [u8],
    ) -> Result<usize, Bad> {
        if space.is_empty() {
            space.resize(MAX_READ, 0);
        }
        // So much that what is left over is less than a record.
        let at_once = if self.fills_records {
            MAX_READ
        } else {
            SMALL_READ
        };
        let most = buf.len().clamp(MAX_RECORD, at_once);
        loop {
            if self.opened > 0 {
                return Ok(self.take_opened(buf));
            }
            if self.is_over {
                return Err(ended(closed()));
            }
            let mut filled = self.held.len();
            space[..filled].copy_from_slice(&self.held);
            self.held.clear();
            if !has_record(&space[..filled])? {
                let read = wire.read(&mut space[filled..most]);
                let n = match read {
                    Ok(n) => n,
                    Err(error) => return Err(ended(error)),
                };
                filled += n;
                if n == 0 {
                    self.held.extend_from_slice(&space[..filled]);
                    return Ok(0);
                }
            }
            let n = self.open_into(&mut space[..filled], buf)?;
            if n > 0 {
                return Ok(n);
            }
        }
    }

    /// Opens the whole records in `bytes` into `buf`, as far as they find room there, and holds the rest.
    fn open_into(&mut self, bytes: &mut [u8], buf: &mut [u8]) -> Result<usize, Bad> {
        let (mut at, mut out, mut opened) = (0, 0, 0);
        while out < buf.len()
            && !self.is_over
            && let Some(len) = records::length(&bytes[at..])?
            && let Some(record) = bytes.get_mut(at..at + len)
        {
            at += len;
            opened += 1;
            self.cost += RECORD_COST;
            match self.records.open(record)? {
                Content::Data(data) => {
                    let taken = data.len().min(buf.len() - out);
                    buf[out..out + taken].copy_from_slice(&data[..taken]);
                    out += taken;
                    self.held.extend_from_slice(&data[taken..]);
                    self.opened = self.held.len();
                }
                Content::Message => self.cost += MESSAGE_COST,
                Content::Closed => self.is_over = true,
            }
        }
        self.held.extend_from_slice(&bytes[at..]);
        if opened > 0 {
            self.fills_records = at >= opened * SMALL_RECORD;
        }
        Ok(out)
    }

    fn take_opened(&mut self, buf: &mut [u8]) -> usize {
        let taken = self.opened.min(buf.len());
        buf[..taken].copy_from_slice(&self.held[..taken]);
        self.held.drain(..taken);
        self.opened -= taken;
        taken
    }

    /// Seals some of the queue's bytes, in as many records as one write takes.
    ///
    /// # Errors
    /// They can't be sealed.
    pub fn seal(&mut self, queue: &mut SendQueue) -> io::Result<()> {
        if self.records.must_rekey() {
            let told = self.records.rekey()?;
            self.push(told);
        }
        let mut slots = [IoSlice::new(&[]); GATHER];
        let filled = queue.gather(&mut slots, BATCH * MAX_CONTENT);
        let mut chunks: [&[u8]; GATHER] = [&[]; GATHER];
        for (chunk, slot) in chunks.iter_mut().zip(&slots[..filled]) {
            *chunk = slot;
        }
        let mut rest = OutboundChunks::new(&chunks[..filled]);
        let taken = rest.len();
        while !rest.is_empty() {
            let (data, more) = rest.split_at(MAX_CONTENT);
            let record = self.records.seal(data)?;
            self.sealed_bytes += record.len();
            self.sealed.push_back(record);
            rest = more;
        }
        queue.advance(taken);
        Ok(())
    }

    fn push(&mut self, record: Vec<u8>) {
        self.sealed_bytes += record.len();
        self.sealed.push_back(record);
    }

    /// Writes what is sealed, as far as it goes; returns how many bytes went.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&mut self, wire: &mut Wire, more: bool) -> io::Result<usize> {
        let mut all = 0;
        while !self.sealed.is_empty() {
            let mut slots = [IoSlice::new(&[]); BATCH + 1];
            let filled = self.sealed.len().min(slots.len());
            for (slot, record) in slots.iter_mut().zip(&self.sealed) {
                *slot = IoSlice::new(record);
            }
            slots[0] = IoSlice::new(&self.sealed[0][self.written..]);
            let n = wire.write(&slots[..filled], more)?;
            if n == 0 {
                break;
            }
            all += n;
            self.wrote(n);
        }
        Ok(all)
    }

    fn wrote(&mut self, n: usize) {
        self.sealed_bytes -= n;
        self.written += n;
        while let Some(first) = self.sealed.front()
            && self.written >= first.len()
        {
            self.written -= first.len();
            self.sealed.pop_front();
        }
    }

    /// Tells the peer why the connection ends, as far as that goes at once.
    pub fn tell(&mut self, wire: &mut Wire, alert: AlertDescription) {
        if alert != AlertDescription::CloseNotify {
            self.tell_end(wire, Some(alert));
        }
    }

    /// Tells the peer that nothing more is sent, `None` if all went well, as far as that goes at once.
    pub fn tell_end(&mut self, wire: &mut Wire, alert: Option<AlertDescription>) {
        if self.sealed.is_empty()
            && let Ok(end) = self.records.seal_end(alert)
        {
            let _ = wire.write(&[IoSlice::new(&end)], false);
        }
    }
}

/// The connection has ended by itself: the peer is told nothing.
fn ended(error: io::Error) -> Bad {
    Bad {
        alert: AlertDescription::CloseNotify,
        error,
    }
}

fn has_record(bytes: &[u8]) -> Result<bool, Bad> {
    Ok(records::length(bytes)?.is_some_and(|len| len <= bytes.len()))
}
