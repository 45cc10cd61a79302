//! A controller that lists what a test says, and remembers what it was told.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Asked, Server, fine, problem};

/// A request waits no longer than that, so that tests don't.
const WAIT: Duration = Duration::from_millis(300);

#[derive(Clone)]
pub struct Controller {
    pub url: String,
    server: Arc<Server>,
    shared: Arc<(Mutex<Said>, Condvar)>,
}

struct Said {
    seen: u64,
    lease_s: f64,
    flows: Vec<Value>,
    requests: Vec<Value>,
    /// Runs of agents that have left.
    left: Vec<Value>,
}

impl Controller {
    pub fn start() -> Self {
        Self::with_lease(15.0)
    }

    /// One that takes an agent for gone after so many seconds.
    pub fn with_lease(lease_s: f64) -> Self {
        let said = Said {
            seen: 0,
            lease_s,
            flows: Vec::new(),
            requests: Vec::new(),
            left: Vec::new(),
        };
        let shared = Arc::new((Mutex::new(said), Condvar::new()));
        let answers = shared.clone();
        let server = Server::start(move |asked: &Asked| {
            assert_eq!(asked.line, "POST /v1/mirror-agents/test HTTP/1.1");
            let request: Value = serde_json::from_str(&asked.body).expect("JSON");
            let (said, changed) = &*answers;
            let mut said = said.lock().expect("a lock");
            said.requests.push(request.clone());
            if request["leaving"] == true {
                said.left.push(request["run"].clone());
            } else if said.left.contains(&request["run"]) {
                return problem(409, &json!({"detail": "this run has left", "why": "left"}));
            }
            let waits = request["wait_ms"] != 0 && request["leaving"] == false;
            if waits && request["controller"] == "one" {
                let before = |said: &mut Said| request["seen"] == said.seen;
                said = changed
                    .wait_timeout_while(said, WAIT, before)
                    .expect("a lock")
                    .0;
            }
            fine(&json!({
                "controller": "one", "seen": said.seen, "lease_s": said.lease_s, "flows": said.flows,
                "stopped": if request["leaving"] == true { json!(true) } else { Value::Null },
            }))
        });
        Controller {
            url: server.url.clone(),
            server: Arc::new(server),
            shared,
        }
    }

    /// Lists other flows from now on.
    pub fn list(&self, flows: Vec<Value>) {
        let (said, changed) = &*self.shared;
        let mut said = said.lock().expect("a lock");
        said.seen += 1;
        said.flows = flows;
        changed.notify_all();
    }

    /// Whether a request that came was so.
    pub fn was_told(&self, is_so: impl Fn(&Value) -> bool) -> bool {
        let said = self.shared.0.lock().expect("a lock");
        said.requests.iter().any(is_so)
    }

    /// The head of each request that came.
    pub fn heads(&self) -> Vec<String> {
        let asked = self.server.asked().into_iter();
        asked.map(|asked| asked.head).collect()
    }

    /// Takes a run of an agent for one that has left.
    pub fn forget(&self, run: &Value) {
        let mut said = self.shared.0.lock().expect("a lock");
        said.left.push(run.clone());
    }

    pub fn last(&self) -> Option<Value> {
        let said = self.shared.0.lock().expect("a lock");
        said.requests.last().cloned()
    }
}

/// One end of a connection.
pub fn end(address: &str, port: u16) -> Value {
    json!({"address": address, "port": port})
}

/// A pipeline in which this host, 10.9.0.1, is the second replica of three.
pub fn second(id: &str) -> Value {
    json!({
        "id": id, "position": 2, "lead": false, "head": 7,
        "receive": {"source": end("10.9.0.2", 40_000), "destination": end("10.9.0.1", 9866)},
        "send": {"source": end("10.9.0.1", 41_000), "destination": end("10.9.0.3", 9866)},
    })
}
