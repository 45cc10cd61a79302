//! What the fuzz targets drive of the agent at a bridge.

use super::frames::Heard;
use super::frames::{SNAP, is_host, mac_of, mac_text, read};
use super::layout::{COPIES, Entry};
use super::wire::{Answer, Segments, octets};

/// What the controller wants of a bridge: what the map is given of it keeps the map's rules.
pub fn switch_answer(bytes: &[u8]) {
    let Ok(answer) = serde_json::from_slice::<Answer>(bytes) else {
        return;
    };
    for says in &answer.entries {
        let Ok(copies) = says.copies() else {
            continue;
        };
        assert!((1..=COPIES).contains(&copies.len()));
        let entry = Entry::new(&copies).expect("as many as there is room for");
        assert_eq!(entry.used(), copies);
        assert!(copies.is_sorted_by_key(|copy| copy.position != 0));
        assert_eq!(Segments::of(&says.of.key()).key(), says.of.key());
    }
    for frame in answer.send.iter().map(|send| &send.frame) {
        if let Some(octets) = octets(frame) {
            assert_eq!(2 * octets.len(), frame.len());
        }
    }
}

/// A frame that came in at a port, and an Ethernet address as text.
pub fn frame(bytes: &[u8]) {
    let snap = &bytes[..bytes.len().min(SNAP)];
    if let Some(Heard::Host { mac, address }) = read(snap) {
        assert!(is_host(&mac) && !address.is_unspecified() && !address.is_multicast());
        assert!(!address.is_loopback());
        assert_eq!(mac_of(&mac_text(&mac)), Some(mac));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Some(mac) = mac_of(text) {
            assert!(mac_text(&mac).eq_ignore_ascii_case(text));
        }
        let _ = octets(text);
    }
}
