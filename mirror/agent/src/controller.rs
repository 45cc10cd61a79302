//! Asking the controller by its REST interface.

use std::io;
use std::time::Duration;

use rustls::CertificateError as Wrong;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::wire::{Answer, Request};

/// Beyond what a request may wait.
const PATIENCE: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
/// As many flows as the maps have room for are a quarter of that.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// Characters of what a server says of its refusal.
const MAX_SAID: usize = 300;

/// Where the controller is, and what it wants to see.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Its URL, http or https.
    pub url: String,
    /// The bearer token, where it wants one.
    pub token: Option<String>,
    /// Certificates in PEM that an https controller is checked against; none: those that browsers trust.
    pub authorities: Option<Vec<u8>>,
}

/// The controller does not answer, or refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("controller at {url}: {cause}")]
pub struct ControllerError {
    /// Where it was asked.
    pub url: String,
    /// What is in the way, and the way out.
    pub cause: String,
    /// Whether it may have taken the request for a sign of life of the agent.
    pub counts: bool,
    /// Whether it has been told that this run of the agent leaves, and hears it no more.
    pub left: bool,
}

#[derive(Deserialize)]
struct Problem {
    detail: String,
    #[serde(default)]
    remedy: String,
    #[serde(default)]
    why: String,
}

/// What the controller calls the refusal of a run that has left.
const LEFT: &str = "left";

/// Asks one controller.
pub struct Client {
    agent: Agent,
    /// Says the last word: the other one is shut down by then.
    leaver: Agent,
    url: String,
    path: String,
    token: Option<String>,
    /// The table of settings that its errors name.
    table: &'static str,
}

impl Client {
    /// For the agent of this name.
    ///
    /// # Errors
    /// The certificates are none.
    pub fn new(place: &Place, name: &str) -> Result<Self, ControllerError> {
        let url = place.url.trim_end_matches('/').to_owned();
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &place.authorities {
            let found: Vec<_> = certificates(pem);
            if found.is_empty() {
                return Err(ControllerError {
                    url,
                    cause: String::from("no certificate to check it against"),
                    counts: false,
                    left: false,
                });
            }
            tls = tls.root_certs(RootCerts::from(found));
        }
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("trunkline-mirror/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            .build();
        Ok(Self {
            agent: config.clone().into(),
            leaver: config.into(),
            path: format!("{url}/v1/mirror-agents/{}", escaped(name)),
            url,
            token: place.token.clone(),
            table: "agent",
        })
    }

    /// For the agent of this name at a bridge.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn of_switch(place: &Place, name: &str) -> Result<Self, ControllerError> {
        let mut client = Self::new(place, name)?;
        client.path = format!("{}/v1/mirror-switches/{}", client.url, escaped(name));
        client.table = "switch";
        Ok(client)
    }

    /// Says what the agent has to say, and waits for the answer.
    ///
    /// # Errors
    /// It can't be reached, or refuses; or the agent has left.
    pub fn ask(&self, request: &Request) -> Result<Answer, ControllerError> {
        self.exchange(request, request.wait_ms)
    }

    /// The same, of any agent. `wait_ms`: how long the controller may take before it answers.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn exchange<Q: Serialize, A: DeserializeOwned>(
        &self,
        request: &Q,
        wait_ms: u64,
    ) -> Result<A, ControllerError> {
        self.post(&self.agent, request, wait_ms)
    }

    /// Says that the agent leaves. A request that waits for its answer fails at once, and none goes any more: it could
    /// come after this one, and bring the agent back.
    ///
    /// # Errors
    /// It can't be reached, or refuses.
    pub fn leave(&self, request: &Request) -> Result<Answer, ControllerError> {
        self.end_with(request, request.wait_ms)
    }

    /// The same, of any agent.
    ///
    /// # Errors
    /// As [`Client::leave`].
    pub fn end_with<Q: Serialize, A: DeserializeOwned>(
        &self,
        request: &Q,
        wait_ms: u64,
    ) -> Result<A, ControllerError> {
        self.agent.clone().shutdown();
        self.post(&self.leaver, request, wait_ms)
    }

    fn post<Q: Serialize, A: DeserializeOwned>(
        &self,
        by: &Agent,
        request: &Q,
        wait_ms: u64,
    ) -> Result<A, ControllerError> {
        let body = serde_json::to_vec(request)
            .map_err(|e| self.error(format!("request not encoded: {e}")))?;
        let mut asked = by
            .post(&self.path)
            .config()
            .timeout_global(Some(Duration::from_millis(wait_ms) + PATIENCE))
            .build()
            .header("Content-Type", "application/json");
        if let Some(token) = &self.token {
            asked = asked.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = asked.send(&body[..]).map_err(|e| ControllerError {
            counts: may_have_come(&e),
            ..self.error(unreachable(&e))
        })?;
        let status = answer.status();
        let may_count = |error| ControllerError {
            counts: true,
            ..error
        };
        let body = answer
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER_BYTES)
            .read_to_vec()
            .map_err(|e| may_count(self.error(unreachable(&e))))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|e| {
                may_count(self.error(format!(
                    "its answer is another than expected: {e}; run controller and agents of one release"
                )))
            });
        }
        let problem = serde_json::from_slice::<Problem>(&body);
        let why = problem.as_ref().map_or("", |problem| &problem.why);
        let (left, is_at_odds) = (status == 409 && why == LEFT, !why.is_empty());
        let cause = match (status.as_u16(), problem) {
            (401, _) if self.token.is_none() => {
                String::from("it wants a token; give it with agent.token_file")
            }
            (401, _) => String::from("it refuses the token; agent.token_file is to name its own"),
            (_, Ok(problem)) if problem.remedy.is_empty() => said(&problem.detail),
            (_, Ok(problem)) => format!("{}; {}", said(&problem.detail), said(&problem.remedy)),
            (404 | 405, Err(_)) => String::from(
                "it knows no agents of mirrored replication; agent.controller is to name a trunkline-controller of \
                 this release",
            ),
            (code, Err(_)) => {
                format!("it answers {code}; agent.controller is to name a trunkline-controller")
            }
        };
        Err(ControllerError {
            // One that ends while it waits has been counted, one that is at odds with others has not.
            counts: status.is_server_error() || status == 409 && !is_at_odds,
            left,
            ..self.error(cause)
        })
    }

    fn error(&self, mut cause: String) -> ControllerError {
        if self.table != "agent" {
            for key in ["controller", "token_file", "ca_file"] {
                let own = format!("{}.{key}", self.table);
                cause = cause.replace(&format!("agent.{key}"), &own);
            }
        }
        ControllerError {
            url: self.url.clone(),
            cause,
            counts: false,
            left: false,
        }
    }
}

/// The certificates in a PEM file.
#[must_use]
pub fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    parse_pem(pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect()
}

/// Whether this is the URL of a server, without a path.
#[must_use]
pub fn is_server(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.path().trim_matches('/').is_empty()
            && uri.query().is_none()
    })
}

/// Whether a token would go to another host unencrypted.
#[must_use]
pub fn is_in_clear(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let loopback = host.eq_ignore_ascii_case("localhost")
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        uri.scheme_str() != Some("https") && !loopback
    })
}

/// A name as a part of a path.
fn escaped(name: &str) -> String {
    let mut path = String::new();
    for octet in name.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            path.push(char::from(octet));
        } else {
            path.push_str(&format!("%{octet:02X}"));
        }
    }
    path
}

fn said(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control());
    printable.take(MAX_SAID).collect()
}

/// Whether the controller may have got a request that failed so.
fn may_have_come(error: &ureq::Error) -> bool {
    use io::ErrorKind as Kind;
    match error {
        ureq::Error::ConnectionFailed
        | ureq::Error::HostNotFound
        | ureq::Error::Rustls(_)
        | ureq::Error::Tls(_)
        | ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => false,
        ureq::Error::Io(e) => !matches!(
            e.kind(),
            Kind::ConnectionRefused
                | Kind::HostUnreachable
                | Kind::NetworkUnreachable
                | Kind::AddrNotAvailable
                | Kind::InvalidData
                | Kind::NotConnected
        ),
        _ => true,
    }
}

fn unreachable(error: &ureq::Error) -> String {
    if let Some(cause) = tls(error) {
        return cause;
    }
    match error {
        ureq::Error::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused => String::from(
            "connection refused; start it with trunkline-controller, or name another with agent.controller",
        ),
        ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => {
            format!("{error}; check agent.controller")
        }
        ureq::Error::Timeout(_) => {
            String::from("no answer in time; its log says whether it is stuck")
        }
        other => other.to_string(),
    }
}

/// What is wrong with TLS, if it is that.
fn tls(error: &ureq::Error) -> Option<String> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<rustls::Error>()?,
        _ => return None,
    };
    let way_out = match error {
        rustls::Error::InvalidCertificate(why) => match why {
            Wrong::Expired | Wrong::ExpiredContext { .. } => {
                "renew its certificate, or set this host's clock right"
            }
            Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
                "set this host's clock right, or the one where the certificate was made"
            }
            Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
                "agent.controller is to name it as its certificate does"
            }
            _ => "agent.ca_file is to name the authority that signed its certificate",
        },
        rustls::Error::InvalidMessage(_) => {
            "write http:// in agent.controller, or have it speak TLS"
        }
        _ => "its log says more",
    };
    Some(format!("{error}; {way_out}"))
}

#[cfg(test)]
mod tls_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    /// What an agent with this token makes of an answer, and the head of its request.
    fn asked(token: Option<&str>, answer: &str) -> (Result<Answer, ControllerError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = Place {
            url: format!("http://{}/", listener.local_addr().expect("an address")),
            token: token.map(str::to_owned),
            authorities: None,
        };
        let answer = answer.to_owned();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
            let length = head.lines().find_map(|l| {
                l.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            let mut body = vec![0; length.expect("a length")];
            reader.read_exact(&mut body).expect("a body");
            // Who has read enough hangs up.
            let _ = (&stream).write_all(answer.as_bytes());
            head
        });
        let client = Client::new(&place, "dn 1").expect("a client");
        let outcome = client.ask(&Request::default());
        (outcome, server.join().expect("a server"))
    }

    pub fn http(status: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }

    #[test]
    fn a_request_has_the_name_and_the_token() {
        let body = r#"{"controller": "c", "seen": 1, "lease_s": 15, "flows": []}"#;
        let (outcome, head) = asked(Some("secret"), &http("200 OK", body));
        assert_eq!(outcome.expect("an answer").controller, "c");
        let head = head.to_lowercase();
        assert!(
            head.starts_with("post /v1/mirror-agents/dn%201 http/1.1\r\n"),
            "{head}"
        );
        assert!(head.contains("authorization: bearer secret\r\n"), "{head}");
        assert!(
            head.contains("content-type: application/json\r\n"),
            "{head}"
        );
    }

    #[test]
    fn what_is_refused_says_why_and_what_to_do() {
        let problem = r#"{"detail": "mirroring is off", "remedy": "set mirror.enabled"}"#;
        for (token, answer, said) in [
            (
                None,
                http("401 Unauthorized", "{}"),
                "give it with agent.token_file",
            ),
            (
                Some("x"),
                http("401 Unauthorized", "{}"),
                "refuses the token",
            ),
            (
                None,
                http("409 Conflict", problem),
                "mirroring is off; set mirror.enabled",
            ),
            (
                None,
                http("404 Not Found", "nothing"),
                "knows no agents of mirrored replication",
            ),
            (
                None,
                http("200 OK", "[]"),
                "its answer is another than expected",
            ),
            (None, http("502 Bad Gateway", "<html>"), "it answers 502"),
            (
                None,
                String::from("SSH-2.0-x\r\n"),
                "controller at http://127.0.0.1:",
            ),
        ] {
            let (outcome, _) = asked(token, &answer);
            let error = outcome.expect_err("refused").to_string();
            assert!(error.contains(said), "{answer}: {error}");
        }
    }

    #[test]
    fn what_the_controller_may_count_is_told_from_what_it_never_had() {
        let left = r#"{"detail": "this run has left", "remedy": "start it anew", "why": "left"}"#;
        let taken = r#"{"detail": "of another agent", "why": "address_taken"}"#;
        for (answer, counts, has_left) in [
            (http("401 Unauthorized", "{}"), false, false),
            (
                http("409 Conflict", r#"{"detail": "polled again"}"#),
                true,
                false,
            ),
            (http("409 Conflict", left), false, true),
            (http("409 Conflict", taken), false, false),
            (http("503 Service Unavailable", "{}"), true, false),
            (http("200 OK", "[]"), true, false),
            (String::new(), true, false),
        ] {
            let error = asked(None, &answer).0.expect_err("refused");
            assert_eq!((error.counts, error.left), (counts, has_left), "{answer}");
        }
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = Place {
            url: format!("http://{}", free.local_addr().expect("an address")),
            ..Place::default()
        };
        drop(free);
        let client = Client::new(&place, "dn1").expect("a client");
        assert!(!client.ask(&Request::default()).expect_err("nobody").counts);
    }

    /// A poll that came after the leave would bring the agent back, for a lease.
    #[test]
    fn nothing_is_asked_after_the_leave() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = Place {
            url: format!("http://{}", listener.local_addr().expect("an address")),
            ..Place::default()
        };
        let client = Client::new(&place, "dn1").expect("a client");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| client.ask(&Request::default()));
            // It is answered never; until it has come, nothing else is said.
            let (poll, _) = listener.accept().expect("a connection");
            BufReader::new(&poll)
                .read_line(&mut String::new())
                .expect("a request");
            let leaving = scope.spawn(|| {
                client.leave(&Request {
                    leaving: true,
                    ..Request::default()
                })
            });
            waiting.join().expect("a thread").expect_err("cut short");
            let (mut leave, _) = listener.accept().expect("a connection");
            client.ask(&Request::default()).expect_err("it has left");
            let body =
                r#"{"controller": "c", "seen": 0, "lease_s": 15, "flows": [], "stopped": true}"#;
            leave
                .write_all(http("200 OK", body).as_bytes())
                .expect("answered");
            let answer = leaving.join().expect("a thread").expect("an answer");
            assert_eq!(answer.stopped, Some(true));
        });
        listener.set_nonblocking(true).expect("set");
        assert!(listener.accept().is_err(), "nothing else came");
    }

    #[test]
    fn a_bridge_s_agent_asks_elsewhere_and_is_told_of_its_own_settings() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = Place {
            url: format!("http://{}/", free.local_addr().expect("an address")),
            ..Place::default()
        };
        drop(free);
        let client = Client::of_switch(&place, "rack 1").expect("a client");
        assert!(
            client.path.ends_with("/v1/mirror-switches/rack%201"),
            "{}",
            client.path
        );
        let error = client.ask(&Request::default()).expect_err("nobody");
        assert!(
            error.cause.ends_with("name another with switch.controller"),
            "{error}"
        );
    }

    #[test]
    fn an_answer_that_never_ends_is_not_read_to_its_end() {
        let whole = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}",
            " ".repeat(17 << 20)
        );
        let (outcome, _) = asked(None, &whole);
        outcome.expect_err("too long");
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("dn-1.example"), "dn-1.example");
        assert_eq!(escaped("a/b c"), "a%2Fb%20c");
    }

    #[test]
    fn servers_are_told_from_other_texts() {
        for right in [
            "http://127.0.0.1:8181",
            "https://c.example/",
            "http://[::1]:1",
        ] {
            assert!(is_server(right), "{right}");
        }
        for wrong in [
            "",
            "127.0.0.1:8181",
            "ftp://a",
            "http://",
            "http://a/v1",
            "http://a?b",
        ] {
            assert!(!is_server(wrong), "{wrong}");
        }
        assert!(is_in_clear("http://10.0.0.1:8181") && !is_in_clear("https://10.0.0.1"));
        assert!(!is_in_clear("http://127.0.0.1:8181") && !is_in_clear("http://[::1]:8181"));
    }
}
