//! Asking a forwarder's management, above all to lead Interests here.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ndn_forwarder::mgmt::{ControlParameters, ControlResponse, Scope, command, command_name};
use ndn_packet::{Interest, Name, NetKind, NetPacket, Signer, SigningKey};

use crate::app::App;
use crate::client::Client;
use crate::error::ClientError;

/// A command is given up after this long, and sent once more.
const COMMAND_WAIT: Duration = Duration::from_secs(2);
const COMMAND_TRIES: u32 = 2;
/// A command that is refused by this code may be refused for its time alone: NFD takes no command
/// whose time is not later than that of the last one by the same key, and all that sign by digest
/// have the same. It is signed anew so often, with a time that is later by now.
const MAYBE_TOO_EARLY: u64 = 403;
const REFUSED_TRIES: u32 = 3;
const REFUSED_WAIT: Duration = Duration::from_millis(20);

/// Waits for the answer to one Interest.
struct Question {
    interest: Interest,
    until: Duration,
    answer: Option<NetPacket>,
    over: bool,
}

impl Question {
    fn is_answer(&self, packet: &NetPacket) -> bool {
        match &packet.packet {
            NetKind::Data(data) if self.interest.can_be_prefix() => {
                self.interest.name().is_prefix_of(data.name())
            }
            NetKind::Data(data) => self.interest.name() == data.name(),
            NetKind::Nack { interest, .. } => self.interest.name() == interest.name(),
            NetKind::Interest(_) => false,
        }
    }
}

impl App for Question {
    fn on_packet(&mut self, _: Duration, packet: NetPacket, _: &mut Vec<NetPacket>) {
        if self.is_answer(&packet) {
            self.answer = Some(packet);
        }
    }

    fn on_wake(&mut self, _: Duration, out: &mut Vec<NetPacket>) {
        out.push(NetPacket::interest(self.interest.clone()));
    }

    fn deadline(&self) -> Option<Duration> {
        Some(self.until)
    }

    fn on_deadline(&mut self, _: Duration, _: &mut Vec<NetPacket>) {
        self.over = true;
    }
}

impl Client {
    /// Sends one Interest and waits for its Data or Nack; `None` where neither comes within
    /// `wait`. Whatever else comes meanwhile is dropped.
    ///
    /// # Errors
    /// Where the face is lost.
    pub fn ask(
        &mut self,
        interest: Interest,
        wait: Duration,
    ) -> Result<Option<NetPacket>, ClientError> {
        let until = self.now() + wait;
        let mut question = Question {
            interest,
            until,
            answer: None,
            over: false,
        };
        self.run(&mut question, |question| {
            question.answer.is_some() || question.over
        })?;
        Ok(question.answer)
    }

    /// Sends a management command (`module` and `verb` as in `rib`, `register`), signed by
    /// `signer`, to the forwarder of this host at the other end, and waits for the answer.
    ///
    /// # Errors
    /// Where the face is lost or the forwarder does not answer. A refusal is an answer.
    pub fn command<S: Signer + ?Sized>(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
        signer: &S,
    ) -> Result<ControlResponse, ClientError> {
        self.command_in(Scope::Localhost, module, verb, parameters, signer)
    }

    fn command_in<S: Signer + ?Sized>(
        &mut self,
        scope: Scope,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
        signer: &S,
    ) -> Result<ControlResponse, ClientError> {
        let name = command_name(scope, module, verb, parameters);
        let (mut silent, mut refused) = (0, 0);
        let mut last_time = Duration::ZERO;
        while silent < COMMAND_TRIES {
            let mut nonce = [0; 8];
            rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())
                .map_err(|error| ClientError::Loop(error.into()))?;
            let unix_time = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                // Also where the clock was set back meanwhile.
                .max(last_time + Duration::from_millis(1));
            last_time = unix_time;
            let wire = command(
                &name,
                signer,
                u64::from_ne_bytes(nonce),
                unix_time,
                COMMAND_WAIT,
            );
            let interest = Interest::parse(wire)
                .map_err(|error| self.no_answer(module, verb, &error.to_string()))?;
            match self
                .ask(interest, COMMAND_WAIT)?
                .map(|answer| answer.packet)
            {
                Some(NetKind::Data(data)) => {
                    let response = ControlResponse::decode(&data.content())
                        .map_err(|error| self.no_answer(module, verb, &error.to_string()))?;
                    refused += 1;
                    if response.code != MAYBE_TOO_EARLY || refused == REFUSED_TRIES {
                        return Ok(response);
                    }
                    std::thread::sleep(REFUSED_WAIT * refused);
                }
                Some(NetKind::Nack { reason, .. }) => {
                    return Err(self.no_answer(module, verb, &format!("Nack, {reason}")));
                }
                Some(NetKind::Interest(_)) | None => silent += 1,
            }
        }
        Err(self.no_answer(
            module,
            verb,
            &format!("silence for {:?}", COMMAND_WAIT * COMMAND_TRIES),
        ))
    }

    /// Signs from now on what [`register`](Self::register) and [`unregister`](Self::unregister) ask, by
    /// this key in the place of DigestSha256.
    pub fn sign_commands(&mut self, key: SigningKey) {
        self.signer = Arc::new(key);
    }

    /// Has the forwarder lead Interests under `prefix` to this client (`rib/register`), with a
    /// command signed by digest, as forwarders accept it on local faces, or by the key of
    /// [`sign_commands`](Self::sign_commands). A forwarder that takes
    /// this client for another host's is asked as a neighbour (`/localhop`), if it allows that.
    ///
    /// # Errors
    /// Where the face is lost, or the forwarder refuses or does not answer.
    pub fn register(&mut self, prefix: &Name) -> Result<(), ClientError> {
        self.rib("register", prefix)
    }

    /// Takes back what [`Client::register`] did.
    ///
    /// # Errors
    /// As there.
    pub fn unregister(&mut self, prefix: &Name) -> Result<(), ClientError> {
        self.rib("unregister", prefix)
    }

    fn rib(&mut self, verb: &'static str, prefix: &Name) -> Result<(), ClientError> {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            ..Default::default()
        };
        let scope = if self.uri().is_on_this_host() {
            Scope::Localhost
        } else {
            Scope::Localhop
        };
        let key = self.signer.clone();
        let response = self.command_in(scope, "rib", verb, &parameters, &*key)?;
        if response.code == 200 {
            return Ok(());
        }
        Err(ClientError::Refused {
            uri: self.uri().clone(),
            verb,
            name: prefix.to_string().into(),
            code: response.code,
            text: response.text,
        })
    }

    fn no_answer(&self, module: &str, verb: &str, seen: &str) -> ClientError {
        ClientError::NoAnswer {
            uri: self.uri().clone(),
            what: format!("{module}/{verb}"),
            seen: seen.to_owned(),
        }
    }
}
