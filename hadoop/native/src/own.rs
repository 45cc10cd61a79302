//! Bytes that nobody else can write to.
//!
//! A packet may lie in memory that the router's process can still write to. What
//! is checked in it can be other bytes when it is used. So a packet is copied
//! once, where it comes in, and is read, checked and used there.

use std::hint::black_box;

use bytes::Bytes;
use ndn_packet::{Data, Interest};

/// Copies a part of a packet into `to`, which is as long.
pub(crate) fn copied<'a>(from: &[u8], to: &'a mut [u8]) -> &'a mut [u8] {
    to.copy_from_slice(from);
    // The compiler believes that what is borrowed does not change, so it may read the packet again
    // in place of the copy. It cannot where it does not know what the copy holds.
    black_box(to)
}

/// The packet, copied and parsed anew; `None` when its bytes are no packet any more.
pub(crate) fn data(packet: &Data) -> Option<Data> {
    Data::parse(bytes(packet.wire())).ok()
}

/// The same for an Interest.
pub(crate) fn interest(packet: &Interest) -> Option<Interest> {
    Interest::parse(bytes(packet.wire())).ok()
}

fn bytes(wire: &Bytes) -> Bytes {
    black_box(wire.to_vec()).into()
}

/// Memory of packets as another process can write to it, for tests.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU8, Ordering};

    use bytes::Bytes;

    /// Some of it; clones are the same memory.
    #[derive(Clone)]
    pub(crate) struct Writable(Arc<[AtomicU8]>);

    impl Writable {
        pub(crate) fn holding(bytes: &[u8]) -> Self {
            Writable(bytes.iter().map(|byte| AtomicU8::new(*byte)).collect())
        }

        /// The memory, borrowed as the forwarder does.
        pub(crate) fn bytes(&self) -> Bytes {
            Bytes::from_owner(self.clone())
        }

        /// The other process puts bytes of the same number in their place.
        pub(crate) fn become_other(&self, bytes: &[u8]) {
            assert_eq!(bytes.len(), self.0.len());
            for (byte, new) in self.0.iter().zip(bytes) {
                byte.store(*new, Ordering::Relaxed);
            }
        }

        /// The other process turns all bits.
        pub(crate) fn turn(&self) {
            for byte in &*self.0 {
                byte.fetch_xor(0xff, Ordering::Relaxed);
            }
        }
    }

    impl AsRef<[u8]> for Writable {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: an atomic byte is laid out as a byte, and all live as long as `self`. They
            // change while they are borrowed, as those of a mapping do: that is what is tested.
            unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Writable;
    use super::*;
    use ndn_packet::{Name, SigningKey};

    #[test]
    fn a_copy_stays_as_it_is() {
        let name: Name = "/a/seg=0".parse().unwrap();
        let wire = Data::builder(&name)
            .content(b"what was written")
            .sign(&SigningKey::DigestSha256);
        let memory = Writable::holding(&wire);
        let packet = Data::parse(memory.bytes()).unwrap();
        let own = data(&packet).unwrap();
        memory.turn();
        assert_eq!(own.wire(), &wire);
        assert_ne!(packet.wire(), &wire);
        assert!(data(&packet).is_none(), "it is no packet any more");

        let wire = Interest::builder(&name).nonce(1).build();
        let memory = Writable::holding(&wire);
        let packet = Interest::parse(memory.bytes()).unwrap();
        let own = interest(&packet).unwrap();
        memory.turn();
        assert_eq!(own.wire(), &wire);
        assert!(interest(&packet).is_none(), "it is none any more");
    }
}
