//! Asking the controller: one request at a time, and what fails told with the way out.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::answers::Problem;
use crate::args::ControllerArgs;
use crate::error::{CliError, Exit, io_cause};

/// A policy is on all switches within that, or the controller is stuck.
const PATIENCE: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: u64 = 64 << 20;
const MAX_TOKEN_BYTES: usize = 4096;

/// What can be wrong with a request.
#[derive(Debug)]
pub enum Refused {
    /// The controller finds a policy wrong, and says all that is.
    Policy(Problem),
    /// Anything else.
    Other(CliError),
}

impl From<Refused> for CliError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Policy(problem) => {
                CliError::failed("policy", problem.detail).or(problem.remedy)
            }
            Refused::Other(error) => error,
        }
    }
}

/// A controller that can be asked.
pub struct Controller {
    agent: Agent,
    /// Without a slash at its end.
    url: String,
    token: Option<String>,
}

impl Controller {
    /// The one that is named.
    ///
    /// # Errors
    /// Its address is none, or a file that is needed to reach it can't be used.
    pub fn new(args: &ControllerArgs) -> Result<Self, CliError> {
        let url = args.controller.trim_end_matches('/');
        let uri = address(url)?;
        let is_tls = uri.scheme_str() == Some("https");
        if args.ca.is_some() && !is_tls {
            return Err(
                CliError::usage("--ca", format!("{url} is not asked by TLS"))
                    .or("write https://, or leave --ca out"),
            );
        }
        let token = args.token_file.as_deref().map(read_token).transpose()?;
        let mut tls = TlsConfig::builder();
        if let Some(path) = &args.ca {
            tls = tls.root_certs(RootCerts::from(read_authorities(path)?));
        }
        if token.is_some() && !is_tls && !is_loopback(&uri) {
            tracing::warn!("the token goes to {url} unencrypted; have the controller speak TLS");
        }
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("trunkline/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            .build();
        Ok(Controller {
            agent: config.into(),
            url: url.to_owned(),
            token,
        })
    }

    /// What `path` under /v1 says.
    ///
    /// # Errors
    /// The controller can't be reached, or refuses.
    pub fn get(&self, path: &str) -> Result<Value, CliError> {
        let request = self.agent.get(format!("{}/v1/{path}", self.url));
        let request = self.with_token(request);
        Ok(self.read(request.call())?)
    }

    /// Has a policy checked.
    ///
    /// # Errors
    /// The same, or what is wrong with the policy.
    pub fn check(&self, text: &str, name: &str) -> Result<Value, Refused> {
        let request = self.agent.post(format!("{}/v1/policy/check", self.url));
        self.send(request, text, name)
    }

    /// Has a policy put in force.
    ///
    /// # Errors
    /// The same, or what is wrong with the policy.
    pub fn apply(&self, text: &str, name: &str) -> Result<Value, Refused> {
        let request = self.agent.put(format!("{}/v1/policy", self.url));
        self.send(request, text, name)
    }

    /// Has no policy in force.
    ///
    /// # Errors
    /// The controller can't be reached, or refuses.
    pub fn clear(&self) -> Result<Value, CliError> {
        let request = self.agent.delete(format!("{}/v1/policy", self.url));
        let request = self.with_token(request);
        Ok(self.read(request.call())?)
    }

    fn send(
        &self,
        request: ureq::RequestBuilder<ureq::typestate::WithBody>,
        text: &str,
        name: &str,
    ) -> Result<Value, Refused> {
        let request = request
            .query("name", name)
            .header("Content-Type", "text/yaml; charset=utf-8");
        self.read(self.with_token(request).send(text))
    }

    fn with_token<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn thing(&self) -> String {
        format!("controller at {}", self.url)
    }

    fn read(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Value, Refused> {
        let mut answer = answer.map_err(|e| Refused::Other(self.unreachable(&e)))?;
        let status = answer.status();
        let body = answer
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER_BYTES)
            .read_to_vec()
            .map_err(|e| Refused::Other(self.unreachable(&e)))?;
        if status.is_success()
            && let Ok(value) = serde_json::from_slice(&body)
        {
            return Ok(value);
        }
        let Ok(problem) = serde_json::from_slice::<Problem>(&body) else {
            let cause = format!("what answers {status} there is no Trunkline controller");
            return Err(Refused::Other(
                CliError::failed(self.thing(), cause).or("check --controller"),
            ));
        };
        if status == 422 && !problem.problems.is_empty() {
            return Err(Refused::Policy(problem));
        }
        let exit = if status == 401 {
            Exit::Usage
        } else {
            Exit::Failed
        };
        let error = CliError::new(exit, self.thing(), problem.detail);
        let way_out = match (status.as_u16(), &self.token) {
            (401, None) => String::from("give it with --token-file"),
            (401, Some(_)) => String::from("the one of --token-file is not the controller's"),
            _ => problem.remedy,
        };
        Err(Refused::Other(error.or(way_out)))
    }

    fn unreachable(&self, error: &ureq::Error) -> CliError {
        let failed = |cause: String| CliError::new(Exit::NoForwarder, self.thing(), cause);
        let elsewhere = "start it with trunkline-controller, or name another with --controller or TRUNKLINE_CONTROLLER";
        match error {
            ureq::Error::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                failed(io_cause(e)).or(elsewhere)
            }
            ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => {
                failed(error.to_string()).or(elsewhere)
            }
            ureq::Error::Timeout(_) => failed(format!("no answer in {}s", PATIENCE.as_secs()))
                .or("its log says whether it is stuck"),
            ureq::Error::Rustls(e) => {
                failed(e.to_string()).or("name the authority that signed its certificate with --ca")
            }
            ureq::Error::Io(e) => match e.get_ref().map(ToString::to_string) {
                Some(text) if text.contains("certificate") => {
                    failed(text).or("name the authority that signed its certificate with --ca")
                }
                _ => failed(io_cause(e)).or("does it speak http or https?"),
            },
            other => failed(other.to_string()).or("check --controller"),
        }
    }
}

/// An answer in the form that people are shown.
///
/// # Errors
/// It is another.
pub fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, CliError> {
    T::deserialize(value).map_err(|e| {
        CliError::failed(
            "controller",
            format!("its answer is another than expected: {e}"),
        )
        .or("are controller and command of one version?")
    })
}

/// A controller's REST interface, as `--controller` names it.
///
/// # Errors
/// A usage error for what is none.
pub fn address(url: &str) -> Result<Uri, CliError> {
    let wrong = || {
        CliError::usage(
            "--controller",
            format!("{url:?} is not a controller's address"),
        )
        .or("write it as http://127.0.0.1:8181 or https://host:port")
    };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let is_whole = matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.host().is_some_and(|host| !host.is_empty())
        && uri.path().trim_matches('/').is_empty()
        && uri.query().is_none();
    if is_whole { Ok(uri) } else { Err(wrong()) }
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn read_token(path: &Path) -> Result<String, CliError> {
    let text = std::fs::read(path).map_err(|e| CliError::file(path, &e))?;
    let token = text.trim_ascii();
    if token.is_empty() || token.len() > MAX_TOKEN_BYTES || !token.iter().all(u8::is_ascii_graphic)
    {
        return Err(
            CliError::usage("--token-file", format!("{} has no token", path.display()))
                .or("name the file that the controller's http.token_file names"),
        );
    }
    Ok(String::from_utf8_lossy(token).into_owned())
}

fn read_authorities(path: &Path) -> Result<Vec<Certificate<'static>>, CliError> {
    let pem = std::fs::read(path).map_err(|e| CliError::file(path, &e))?;
    let found: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        return Err(
            CliError::usage("--ca", format!("{} has no certificate", path.display()))
                .or("name a PEM file with BEGIN CERTIFICATE in it"),
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for right in [
            "http://127.0.0.1:8181",
            "https://controller.example",
            "http://[::1]:1",
        ] {
            assert!(address(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "127.0.0.1:8181",
            "ftp://127.0.0.1",
            "http://",
            "http://a/v1",
            "http://a/?b",
            "http://a b",
        ] {
            let error = address(wrong).expect_err(wrong);
            assert_eq!(
                (error.exit, error.thing.as_str()),
                (Exit::Usage, "--controller")
            );
        }
    }

    #[test]
    fn loopback_is_told_from_elsewhere() {
        let is = |text: &str| is_loopback(&address(text).expect("an address"));
        assert!(is("http://127.9.9.9:1") && is("http://[::1]:1") && is("http://LocalHost"));
        assert!(!is("http://192.0.2.1") && !is("http://localhost.example"));
    }
}
