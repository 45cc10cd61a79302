//! One node: a forwarder on its own thread, a face to the router, and all that
//! Java opens on it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ndn_forwarder::{FaceScope, StrategyKind};
use ndn_io::{
    App, AppHandle, FaceConfig, FaceUri, Lend, LinkOptions, ListenConfig, Node, NodeConfig,
};
use ndn_packet::Name;

use crate::blocks::BlockSource;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::config::NodeSettings;
use crate::content_key::{Asking, Granted};
use crate::error::{NativeError, Result};
use crate::fetch::{FetchSettings, Fetches};
use crate::fixed::FixedData;
use crate::manifest;
use crate::metadata::BlockMetadata;
use crate::producer::{Retain, StreamProducer};
use crate::pull::{BUFFERED_WINDOWS, Pull, PullSettings};
use crate::seal::{Opener, Sealer};
use crate::segment::{DEFAULT_SEGMENT_BYTES, packet_bytes};
use crate::status::{self, Opened};
use crate::totals::Ended;

/// Waits between attempts to reach the router: a router that restarts is found
/// again while a write still waits for it.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How long the start waits for the router's face, so that the first operation
/// of a process does not find it down.
const FACE_WAIT: Duration = Duration::from_secs(1);

/// So often a content key is asked for while what comes does not open.
const KEY_TRIES: usize = 3;
/// Memory for segments that the router is lent: those that wait to be read by it, and the newest that are retained.
const MADE_PACKETS_BYTES: usize = 32 << 20;
/// A pull of segments of default size has at least this window, or is refused.
const MIN_WINDOW: usize = 4;

/// The least window of a pull of packets of at most so many bytes: as many bytes as with segments of default size.
const fn least_window(packet_bytes_at_most: usize) -> usize {
    let window = MIN_WINDOW * packet_bytes(DEFAULT_SEGMENT_BYTES as usize) / packet_bytes_at_most;
    if window < 1 { 1 } else { window }
}

const _: () = assert!(least_window(packet_bytes(DEFAULT_SEGMENT_BYTES as usize)) == MIN_WINDOW);

/// A running node. Dropping it closes it.
pub struct NamedNode {
    number: u64,
    settings: NodeSettings,
    node: Mutex<Option<Node>>,
    clock: Clock,
    seed: RandomState,
    seeds: AtomicU64,
    fetches: Fetches,
    retention: Arc<Budget>,
    pulled: Arc<Budget>,
    opened: Mutex<Opened>,
    ended: Arc<Ended>,
}

fn remember<T>(list: &mut Vec<Weak<T>>, new: &Arc<T>) {
    list.retain(|weak| weak.strong_count() > 0);
    list.push(Arc::downgrade(new));
}

fn failed(error: impl std::fmt::Display) -> NativeError {
    NativeError::Failed(error.to_string())
}

impl NamedNode {
    /// Starts a forwarder and its face to the router. A router that can't be
    /// reached is no error: the face keeps trying, and the status says so.
    ///
    /// # Errors
    /// Settings that make no sense, a listener that can't be opened.
    pub fn open(settings: NodeSettings) -> Result<Arc<Self>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        log_to_stderr();
        let seed = RandomState::new();
        let node = Node::start(node_config(&settings, &seed)?)
            .map_err(|e| NativeError::Config(e.to_string()))?;
        let clock = Clock::new(node.with_forwarder(|_, now| now).map_err(failed)?);
        let (fetches, app) = Fetches::new(seed.hash_one("fetches"));
        fetches.attached(node.attach(app, "fetch").map_err(failed)?, clock);
        let this = Arc::new(NamedNode {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            retention: Budget::new(
                settings.retain_bytes,
                "fewer writers at once, a lower trunkline.ndn.retain.segments, or more \
                 trunkline.ndn.retain.bytes",
            ),
            pulled: Budget::new(
                settings.pull_bytes,
                "fewer writes and reads at once, or more trunkline.ndn.pull.bytes",
            ),
            settings,
            node: Mutex::new(Some(node)),
            clock,
            seed,
            seeds: AtomicU64::new(0),
            fetches,
            opened: Mutex::default(),
            ended: Arc::default(),
        });
        this.wait_for_router();
        Ok(this)
    }

    fn wait_for_router(&self) {
        let until = Instant::now() + FACE_WAIT;
        while self.router_is_up() == Some(false) {
            if Instant::now() >= until {
                let face = self.settings.face.as_deref().unwrap_or_default();
                tracing::warn!(
                    node = self.settings.name,
                    face,
                    "router not reached yet; trying on"
                );
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the router's face is up; `None` where there is none, or the node
    /// is closed.
    pub fn router_is_up(&self) -> Option<bool> {
        self.settings.face.as_deref()?;
        let status = self.with_node(|node| node.status().map_err(failed)).ok()?;
        status::router(&status).map(|face| face.up)
    }

    fn with_node<R>(&self, f: impl FnOnce(&Node) -> Result<R>) -> Result<R> {
        match &*self.node.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(node) => f(node),
            None => Err(NativeError::Closed {
                what: "node",
                name: self.settings.name.clone(),
            }),
        }
    }

    fn attach(&self, app: Box<dyn App>, kind: &str, prefix: Option<&Name>) -> Result<AppHandle> {
        self.with_node(|node| {
            let handle = node.attach(app, kind).map_err(failed)?;
            if let Some(prefix) = prefix {
                handle.register(prefix).map_err(failed)?;
            }
            Ok(handle)
        })
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of this node, unique in the process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What the node was opened with.
    pub fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    /// Where the node listens, with the ports that the system chose.
    ///
    /// # Errors
    /// When the node is closed.
    pub fn listening(&self) -> Result<Vec<String>> {
        self.with_node(|node| Ok(node.listening().iter().map(ToString::to_string).collect()))
    }

    /// Opens a producer of segments below `prefix`, of default size, that
    /// retains the newest `retain` of them.
    ///
    /// # Errors
    /// When the node is closed, or the bound for retained bytes is reached.
    pub fn open_producer(&self, prefix: &Name, retain: usize) -> Result<Arc<StreamProducer>> {
        let retain = Retain {
            segments: retain,
            segment_bytes: DEFAULT_SEGMENT_BYTES as usize,
        };
        self.open_sealed_producer(prefix, retain, None)
    }

    /// The same of segments of any size; with `sealer` all are sealed. No other producer may
    /// have one of this key and kind.
    ///
    /// # Errors
    /// As there.
    pub fn open_sealed_producer(
        &self,
        prefix: &Name,
        retain: Retain,
        sealer: Option<Sealer>,
    ) -> Result<Arc<StreamProducer>> {
        let share = self.retention.reserve(retain.bytes() as u64)?;
        let (producer, app) = StreamProducer::new(
            prefix,
            retain,
            share,
            self.settings.verify,
            sealer,
            self.with_node(|node| Ok(node.packet_buffers()))?,
            self.ended.clone(),
        );
        producer.attached(self.attach(app, "producer", Some(prefix))?, self.clock);
        remember(&mut self.opened().producers, &producer);
        Ok(producer)
    }

    /// Opens a pull of the segments below `prefix`. The more there are, the
    /// smaller is its window.
    ///
    /// # Errors
    /// When the node is closed, or the bound for pulled bytes is reached.
    pub fn open_pull(&self, prefix: &Name, settings: PullSettings) -> Result<Arc<Pull>> {
        self.open_sealed_pull(prefix, settings, None)
    }

    /// The same; with `opener` all segments are sealed.
    ///
    /// # Errors
    /// As there.
    pub fn open_sealed_pull(
        &self,
        prefix: &Name,
        mut settings: PullSettings,
        opener: Option<Opener>,
    ) -> Result<Arc<Pull>> {
        let packet = packet_bytes(settings.segment_bytes);
        let least = least_window(packet);
        let bytes = |window: usize| (window * BUFFERED_WINDOWS * packet) as u64;
        let share = self
            .pulled
            .reserve_some(bytes(settings.window), bytes(least))?;
        settings.window = (share.bytes() / bytes(1)).max(1) as usize;
        let seed = self
            .seed
            .hash_one(self.seeds.fetch_add(1, Ordering::Relaxed));
        let (pull, app) = Pull::new(
            prefix,
            settings,
            seed,
            self.clock.now(),
            self.settings.verify,
            opener,
            share,
            self.ended.clone(),
        );
        pull.attached(self.attach(app, "pull", None)?);
        remember(&mut self.opened().pulls, &pull);
        Ok(pull)
    }

    /// Fetches one packet: its content, or `None` when it was refused or the
    /// time has passed.
    ///
    /// # Errors
    /// When the node is closed.
    pub fn fetch(&self, name: &Name, settings: FetchSettings) -> Result<Option<Bytes>> {
        Ok(self
            .fetches
            .fetch(name, settings)?
            .map(|data| data.content()))
    }

    /// The same for an Interest with ApplicationParameters, whose digest is the
    /// last component of `name`; what comes is not verified here.
    ///
    /// # Errors
    /// When the node is closed.
    pub fn fetch_with(
        &self,
        name: &Name,
        parameters: Bytes,
        settings: FetchSettings,
    ) -> Result<Option<Bytes>> {
        let found = self.fetches.fetch_with(name, parameters, settings)?;
        Ok(found.map(|data| data.content()))
    }

    /// Asks for the metadata of a block by its discovery name,
    /// `<block>/32=metadata`.
    ///
    /// # Errors
    /// When the node is closed, or what came is no metadata of a block.
    pub fn block_metadata(&self, name: &Name, timeout: Duration) -> Result<Option<BlockMetadata>> {
        let settings = FetchSettings {
            must_be_fresh: true,
            can_be_prefix: true,
            rejected: false,
            timeout,
        };
        let content = self.fetch(name, settings)?;
        content
            .map(|content| BlockMetadata::decode(&content))
            .transpose()
    }

    /// Fetches the digests of all segments of a block, `/<root>/blocks/<pool>/<id>`,
    /// that `facts` tells of. `None` when nobody has those.
    ///
    /// # Errors
    /// When the node is closed.
    pub fn block_manifest(
        &self,
        block: &Name,
        facts: &BlockMetadata,
        timeout: Duration,
    ) -> Result<Option<Bytes>> {
        manifest::fetch(&self.fetches, block, facts, timeout)
    }

    /// Asks for what the segments of `version`, `/<root>/blocks/<pool>/<id>/v=<genstamp>`,
    /// are sealed with, by the block token of that identifier and password. `None`
    /// when nobody has it, or gives it to whoever has this token.
    ///
    /// # Errors
    /// When the node is closed, when the token is none, or when what comes does
    /// not open however often it is asked for: somebody else answers.
    pub fn content_key(
        &self,
        version: &Name,
        (identifier, password): (&[u8], &[u8]),
        timeout: Duration,
    ) -> Result<Option<Granted>> {
        let asking = Asking::new(version, identifier, password)?;
        for tries in 0..KEY_TRIES {
            // The same request once more, as routers know by its name whose answer was none.
            let settings = FetchSettings {
                must_be_fresh: true,
                can_be_prefix: false,
                rejected: tries > 0,
                timeout,
            };
            let found = self.fetch_with(asking.name(), asking.parameters(), settings)?;
            let Some(content) = found else {
                return Ok(None);
            };
            let granted = asking.open(&content);
            if granted.is_some() {
                return Ok(granted);
            }
        }
        Err(NativeError::Failed(format!(
            "{version}: what comes as its content key is not of a DataNode that knows the token"
        )))
    }

    /// Publishes one packet until it is withdrawn.
    ///
    /// # Errors
    /// When the node is closed, or the content does not fit into a packet.
    pub fn publish_fixed(
        &self,
        name: &Name,
        content: &[u8],
        freshness: Duration,
    ) -> Result<Arc<FixedData>> {
        let (fixed, app) = FixedData::new(name, content, freshness)?;
        fixed.attached(self.attach(app, "fixed", Some(name))?);
        remember(&mut self.opened().fixed, &fixed);
        Ok(fixed)
    }

    /// Opens a source of finalized replicas below `prefix`, `/<root>/blocks`.
    ///
    /// # Errors
    /// When the node is closed.
    pub fn open_blocks(
        &self,
        prefix: &Name,
        segment_bytes: u32,
        max_open: usize,
    ) -> Result<Arc<BlockSource>> {
        self.open_source(prefix, segment_bytes, max_open, false)
    }

    /// The same where blocks have tokens: segments are served sealed, and their
    /// keys given to whoever proves to have a token that may read.
    ///
    /// # Errors
    /// As there.
    pub fn open_guarded_blocks(
        &self,
        prefix: &Name,
        segment_bytes: u32,
        max_open: usize,
    ) -> Result<Arc<BlockSource>> {
        self.open_source(prefix, segment_bytes, max_open, true)
    }

    fn open_source(
        &self,
        prefix: &Name,
        segment_bytes: u32,
        max_open: usize,
        guarded: bool,
    ) -> Result<Arc<BlockSource>> {
        let verify = self.settings.verify;
        let (source, app) = BlockSource::new(
            prefix,
            segment_bytes,
            max_open,
            verify,
            guarded,
            self.with_node(|node| Ok(node.packet_buffers()))?,
        )?;
        source.attached(self.attach(app, "blocks", Some(prefix))?);
        remember(&mut self.opened().sources, &source);
        Ok(source)
    }

    /// Faces, tables and counters as JSON.
    ///
    /// # Errors
    /// When the node is closed.
    pub fn status(&self) -> Result<String> {
        let node = self.with_node(|node| node.status().map_err(failed))?;
        let status = status::of(
            &self.settings,
            &node,
            &self.opened(),
            &self.ended,
            self.fetches.counters(),
            (self.retention.held(), self.pulled.held()),
        );
        serde_json::to_string(&status).map_err(failed)
    }

    /// Whether the face to the router is up; false without one.
    ///
    /// # Errors
    /// When the node is closed.
    pub fn router_up(&self) -> Result<bool> {
        let node = self.with_node(|node| node.status().map_err(failed))?;
        Ok(status::router(&node).is_some_and(|face| face.up))
    }

    /// Closes all that was opened here, then stops the forwarder.
    pub fn close(&self) {
        let opened = std::mem::take(&mut *self.opened());
        opened
            .pulls
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|pull| pull.close());
        opened
            .sources
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|source| source.close());
        opened
            .fixed
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|fixed| fixed.close());
        opened
            .producers
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|p| p.close(Duration::ZERO));
        self.fetches.close();
        let node = self
            .node
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(node) = node {
            node.shutdown();
        }
    }
}

impl Drop for NamedNode {
    fn drop(&mut self) {
        self.close();
    }
}

/// Warnings and errors go to the process's standard error; `TRUNKLINE_LOG`
/// names another level (error, warn, info, debug, trace). A subscriber that
/// exists already stays.
fn log_to_stderr() {
    let level = std::env::var("TRUNKLINE_LOG")
        .ok()
        .and_then(|text| text.parse().ok());
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(level.unwrap_or(tracing::Level::WARN))
        .try_init();
}

fn node_config(settings: &NodeSettings, seed: &RandomState) -> Result<NodeConfig> {
    let uri = |what: &str, text: &str| {
        let uri = FaceUri::parse(text)
            .map_err(|e| NativeError::Config(format!("{what} {text:?}: {e}")))?;
        if uri.needs_certificate() {
            return Err(NativeError::Config(format!(
                "{what} {text:?}: this plug-in has no settings for certificates; run a router on \
                 this host, give its unix:// or tcp:// address here, and have it connect by tls://"
            )));
        }
        Ok(uri)
    };
    let blocks = settings.root.append_generic("blocks");
    let datanodes = settings.root.append_generic("datanodes");
    let forwarder = ndn_forwarder::Config {
        cs_capacity_bytes: settings.cs_bytes,
        pit_max_entries: settings.pit_entries,
        pit_max_per_face: settings.pit_entries,
        seed: seed.hash_one("forwarder"),
        ..ndn_forwarder::Config::default()
    };
    // Whatever the address, the other end is another node, not an application
    // of ours that may manage this forwarder.
    let link = LinkOptions {
        scope: Some(FaceScope::NonLocal),
        ..LinkOptions::default()
    };
    let mut faces = Vec::new();
    let mut by_unix = false;
    if let Some(face) = &settings.face {
        let face = uri("face", face)?;
        by_unix = face.path().is_some();
        // Own routes for what is looked for: an application registered at the
        // same prefix is asked beside the router, not in its place.
        let routes = [&settings.root, &blocks, &datanodes].map(|name| (name.clone(), 10));
        faces.push(FaceConfig {
            local_bind: settings.local_address,
            routes: routes.to_vec(),
            reconnect: RECONNECT,
            link: LinkOptions {
                dscp: settings.dscp,
                // The router sends what is made here to others anyhow; what it lends is copied before it is checked.
                lend: Lend::Anyone,
                keep_lent: true,
                ..link.clone()
            },
            ..FaceConfig::new(face)
        });
    }
    let listeners = settings.listen.iter().map(|text| {
        let listener = ListenConfig::new(uri("listen", text)?);
        Ok(ListenConfig {
            // What comes in is the affair of nobody who is not sent it.
            link: LinkOptions {
                lend: Lend::Nobody,
                ..link.clone()
            },
            ..listener
        })
    });
    Ok(NodeConfig {
        thread_name: format!("ndn-{}", settings.name),
        forwarder,
        listeners: listeners.collect::<Result<_>>()?,
        faces,
        strategies: vec![
            (blocks, StrategyKind::SelfLearning),
            (datanodes, StrategyKind::SelfLearning),
        ],
        made_packets_bytes: if by_unix { MADE_PACKETS_BYTES } else { 0 },
        ..NodeConfig::default()
    })
}
