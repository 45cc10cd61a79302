//! The server's listener: a thread with a small runtime, so many connections at once, each with its time-outs.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ndn_packet::{Name, Verifier};
use ndn_repo::Repo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

use crate::chain::Chain;
use crate::downloads::Downloads;
use crate::route::{self, Shared};
use crate::shelf::Shelf;
use crate::stall::Stall;

/// Threads that read from disk.
const DISK_THREADS: usize = 8;
/// Bytes of a request's line and headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
const MAX_HEADERS: usize = 64;
/// How long requests that go on may take when the server stops.
const STOP_PATIENCE: Duration = Duration::from_millis(200);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What is given out: files under these names.
    pub prefixes: Vec<Name>,
    /// What verifies the owner's signatures.
    pub owner: Verifier,
    /// Names of this host that browsers may use, besides `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Connections at once; further ones wait.
    pub max_connections: usize,
    /// How long a client may take for the head of a request, and be idle before one.
    pub head_patience: Duration,
    /// How long a client may take nothing of an answer.
    pub stall_patience: Duration,
}

impl HttpOptions {
    /// With the usual bounds: 64 connections, 15 s for a request's head, 60 s for a stalled reader.
    pub fn new(listen: SocketAddr, prefixes: Vec<Name>, owner: Verifier) -> Self {
        Self {
            listen,
            prefixes,
            owner,
            hosts: Vec::new(),
            max_connections: 64,
            head_patience: Duration::from_secs(15),
            stall_patience: Duration::from_secs(60),
        }
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[error(
    "HTTP server at {listen}: {error}; name another address and port, or stop the program that has this one"
)]
pub struct HttpError {
    /// Where it was to listen.
    pub listen: SocketAddr,
    /// What the system says.
    #[source]
    pub error: io::Error,
}

/// A running server. Dropped, it stops.
pub struct HttpServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Serves `repo` on a thread of its own.
    ///
    /// # Errors
    /// The address can't be had.
    pub fn start(repo: Repo, options: HttpOptions) -> Result<Self, HttpError> {
        let listen = options.listen;
        let failed = |error| HttpError { listen, error };
        let listener = StdListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(DISK_THREADS)
            .thread_name("http-disk")
            .build()
            .map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(String::from("http"))
            .spawn(move || {
                if let Err(error) = runtime.block_on(serve(listener, repo, options, stopped)) {
                    tracing::error!(%error, "HTTP server has stopped");
                }
                runtime.shutdown_timeout(STOP_PATIENCE);
            })
            .map_err(failed)?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // Who has ended already hears nothing.
        let _ = self.stop.take().map(|stop| stop.send(()));
        if self.thread.take().is_some_and(|t| t.join().is_err()) {
            tracing::error!("thread of the HTTP server has panicked");
        }
    }
}

async fn serve(
    listener: StdListener,
    repo: Repo,
    options: HttpOptions,
    mut stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(options.max_connections));
    let shared = Arc::new(Shared {
        shelf: Arc::new(Shelf {
            repo,
            chain: Chain::new(options.owner.clone()),
            downloads: Downloads::default(),
        }),
        prefixes: options.prefixes.clone(),
        hosts: options.hosts.clone(),
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(options.head_patience)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS);
    loop {
        let coming = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            _ = &mut stopped => return Ok(()),
            came = coming => came,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (http, shared) = (http.clone(), shared.clone());
                let patience = options.stall_patience;
                tokio::spawn(async move {
                    if let Err(error) = serve_connection(&http, stream, shared, patience).await {
                        tracing::debug!(%peer, %error, "HTTP connection ended");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "HTTP accept failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(
    http: &http1::Builder,
    stream: TcpStream,
    shared: Arc<Shared>,
    patience: Duration,
) -> Result<(), hyper::Error> {
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(route::answer(shared, request).await) }
    });
    let stream = Stall::new(TokioIo::new(stream), patience);
    http.serve_connection(stream, service).await
}
