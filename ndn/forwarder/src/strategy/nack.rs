//! What strategies do alike when an upstream refuses, or is gone.

use crate::state::{Arrival, State};
use crate::table::hash::HashedName;
use bytes::Bytes;
use ndn_packet::Interest;

/// Waits while another upstream may still answer; else lets `retry` send the Interest to some that were not asked, and
/// tells the downstreams if that can't.
pub(crate) fn process_nack(
    fw: &mut State,
    id: u32,
    name: &HashedName<'_>,
    retry: impl FnOnce(&mut State, &Arrival<'_>) -> bool,
) {
    let entry = fw.pit.get(id);
    if entry.has_pending_out(fw.now) {
        return fw.break_deadlock(id);
    }
    let (rejected, doubted) = (entry.rejected, entry.doubted);
    let waiting = entry.ins.iter().find(|r| r.expiry > fw.now).map(|r| r.face);
    let interest = Interest::parse(Bytes::copy_from_slice(entry.wire()));
    let sent = match (waiting, interest) {
        (Some(face), Ok(interest)) => retry(
            fw,
            &Arrival {
                face,
                interest: &interest,
                name,
                mark: None,
                rejected,
                doubted,
                again: true,
            },
        ),
        _ => false,
    };
    if !sent {
        fw.reject(id);
    }
}
