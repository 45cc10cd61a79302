//! A real HTTP server of canned answers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

pub type Answers = dyn Fn(&str) -> (u16, String) + Send;

/// An HTTP server that answers what `answers` says to each path with query.
pub struct Server {
    pub address: String,
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(answers: Box<Answers>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut lines = BufReader::new(stream.try_clone().expect("a copy")).lines();
                let Some(Ok(first)) = lines.next() else {
                    continue;
                };
                while lines.next().is_some_and(|l| l.is_ok_and(|l| !l.is_empty())) {}
                let query = first.split(' ').nth(1).expect("a path").to_owned();
                let (status, body) = answers(&query);
                log.lock().expect("the log").push(query);
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Self { address, asked }
    }
}
