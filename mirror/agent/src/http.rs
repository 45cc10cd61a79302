//! `/metrics` by HTTP: a thread with a small runtime.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

const MAX_CONNECTIONS: usize = 16;
const MAX_HEAD_BYTES: usize = 16 << 10;
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// A connection may last so long: a scrape takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_millis(200);

/// Makes the page that is asked for.
pub type Page = Arc<dyn Fn() -> String + Send + Sync>;

/// A running server. Dropped, it stops.
pub struct HttpServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Serves `page` as `/metrics`.
    ///
    /// # Errors
    /// The address can't be had.
    pub fn start(listen: SocketAddr, page: Page) -> io::Result<Self> {
        let listener = StdListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(String::from("metrics"))
            .spawn(move || {
                if let Err(error) = runtime.block_on(serve(listener, page, stopped)) {
                    tracing::error!(%error, "HTTP server has stopped");
                }
                runtime.shutdown_timeout(STOP_PATIENCE);
            })?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
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
    page: Page,
    mut stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES);
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
                let (http, page) = (http.clone(), page.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let page = page.clone();
                        async move { Ok::<_, Infallible>(answer(&request, &page)) }
                    });
                    let served = http.serve_connection(TokioIo::new(stream), service);
                    match tokio::time::timeout(PATIENCE, served).await {
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "HTTP connection ended"),
                        Ok(Ok(())) => {}
                        Err(_) => {
                            tracing::debug!(%peer, "HTTP connection closed: it lasted too long")
                        }
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

fn answer<B>(request: &Request<B>, page: &Page) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, page()),
        (_, "/metrics") => (
            StatusCode::METHOD_NOT_ALLOWED,
            String::from("405 Method Not Allowed: GET /metrics\n"),
        ),
        _ => (
            StatusCode::NOT_FOUND,
            String::from("404 Not Found: there is /metrics\n"),
        ),
    };
    let mut answer = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    if status == StatusCode::METHOD_NOT_ALLOWED {
        answer = answer.header(ALLOW, "GET, HEAD");
    }
    answer
        .body(Full::new(Bytes::from(text)))
        .unwrap_or_else(|_| Response::new(Full::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    fn ask(at: SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(at).expect("a connection");
        write!(
            stream,
            "{head}\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .expect("sent");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("an answer");
        said
    }

    #[test]
    fn metrics_alone_are_served() {
        let page: Page = Arc::new(|| String::from("one 1\n"));
        let listen = "127.0.0.1:0".parse().expect("an address");
        let server = HttpServer::start(listen, page).expect("a server");
        let at = server.address();
        let said = ask(at, "GET /metrics HTTP/1.1");
        assert!(
            said.starts_with("HTTP/1.1 200") && said.ends_with("\r\n\r\none 1\n"),
            "{said}"
        );
        assert!(ask(at, "GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
        assert!(ask(at, "POST /metrics HTTP/1.1").starts_with("HTTP/1.1 405"));
        assert!(ask(at, "GARBAGE").starts_with("HTTP/1.1 400"));
    }
}
