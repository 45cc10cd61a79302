//! A server of HTTP that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub line: String,
    pub head: String,
    pub body: String,
}

/// Status, type and body of an answer.
pub type Answer = (u16, &'static str, String);

/// A server on a free port that answers by a function and remembers what it was asked.
pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let memory = asked.clone();
        let answer = Arc::new(answer);
        // Lives as long as the test's process: nobody waits for it.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (memory, answer) = (memory.clone(), answer.clone());
                thread::spawn(move || serve(&stream, &memory, &*answer));
            }
        });
        Server { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("a lock").clone()
    }
}

fn serve(stream: &TcpStream, memory: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Answer) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|n| n > 0) {
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
        let length = head
            .lines()
            .find_map(|l| {
                l.to_lowercase()
                    .strip_prefix("content-length:")?
                    .trim()
                    .parse()
                    .ok()
            })
            .unwrap_or(0);
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let asked = Asked {
            line: line.trim().to_owned(),
            head,
            body: String::from_utf8(body).expect("text"),
        };
        memory.lock().expect("a lock").push(asked.clone());
        let (status, kind, body) = answer(&asked);
        let whole = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut writer = stream;
        if writer.write_all(whole.as_bytes()).is_err() {
            return;
        }
        line.clear();
    }
}

/// An answer of the controller.
pub fn fine(value: &Value) -> Answer {
    (200, "application/json", value.to_string())
}

/// A refusal (RFC 9457).
pub fn problem(status: u16, value: &Value) -> Answer {
    (status, "application/problem+json", value.to_string())
}
