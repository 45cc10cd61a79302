//! One Data packet served until it is withdrawn, such as where a DataNode's
//! plug-in listens.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use ndn_io::{App, AppHandle};
use ndn_packet::{Data, MAX_PACKET, NackReason, Name, NetKind, NetPacket, SigningKey};

use crate::error::{NativeError, Result};
use crate::wire;

/// A published Data packet.
pub struct FixedData {
    name: Name,
    served: Arc<AtomicU64>,
    handle: Mutex<Option<AppHandle>>,
}

impl FixedData {
    /// Signs the packet. It is served once the application is attached.
    pub(crate) fn new(
        name: &Name,
        content: &[u8],
        freshness: Duration,
    ) -> Result<(Arc<Self>, Box<dyn App>)> {
        let builder = Data::builder(name).freshness(freshness).content(content);
        let wire = builder.sign(&SigningKey::DigestSha256);
        if wire.len() > MAX_PACKET {
            let text = format!(
                "{name}: {} bytes of content do not fit into one packet of {MAX_PACKET}",
                content.len()
            );
            return Err(NativeError::Argument(text));
        }
        let served = Arc::new(AtomicU64::new(0));
        let app = FixedApp {
            name: name.clone(),
            wire,
            served: served.clone(),
        };
        let fixed = FixedData {
            name: name.clone(),
            served,
            handle: Mutex::new(None),
        };
        Ok((Arc::new(fixed), Box::new(app)))
    }

    pub(crate) fn attached(&self, handle: AppHandle) {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Interests answered.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Withdraws it. Caches may answer until it is stale.
    pub fn close(&self) {
        drop(
            self.handle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

struct FixedApp {
    name: Name,
    wire: Bytes,
    served: Arc<AtomicU64>,
}

impl App for FixedApp {
    fn on_packet(&mut self, _now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let asked = interest.name();
        if asked == self.name.as_ref()
            || (interest.can_be_prefix() && asked.is_prefix_of(&self.name))
        {
            self.served.fetch_add(1, Ordering::Relaxed);
            out.extend(wire::data(self.wire.clone(), packet.pit_token));
        } else {
            out.push(wire::nack(NackReason::NoRoute, interest, packet.pit_token));
        }
    }
}
