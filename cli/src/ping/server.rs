//! `trunkline pingserver`: answers every `<prefix>/ping/<number>`.

use std::time::Duration;

use ndn_io::App;
use ndn_packet::{
    ComponentBuf, Data, MAX_PACKET, NackReason, Name, NetKind, NetPacket, SigningKey,
};
use serde_json::json;

use crate::args::PingServerArgs;
use crate::error::CliError;
use crate::forwarder::Stop;
use crate::output;
use crate::serve::{Service, Wake};

/// Runs `trunkline pingserver`.
///
/// # Errors
/// A forwarder that can't be reached or refuses the prefix.
pub fn pingserver(args: &PingServerArgs) -> Result<(), CliError> {
    let most = (MAX_PACKET as u64).saturating_sub(args.prefix.wire_len() as u64 + 256);
    if args.size > most {
        return Err(
            CliError::usage("--size", format!("{} bytes do not fit a packet", args.size))
                .or(format!("give {most} at most")),
        );
    }
    let stop = Stop::on_signals()?;
    let under = args.prefix.append(ComponentBuf::generic("ping"));
    let mut app = Server {
        under: under.clone(),
        freshness: args.freshness,
        content: vec![0; args.size as usize],
        answered: 0,
        refused: 0,
    };
    let facts = json!({ "prefix": under.to_string() });
    let text = format!("answering {under} until stopped");
    let registered = || {
        if args.json.json {
            output::json_line(&facts)
        } else {
            output::line(&text)
        }
    };
    let service = Service {
        face: &args.face,
        prefixes: std::slice::from_ref(&under),
        suits: &|_| Ok(()),
        wake: Wake::default(),
    };
    service.run(registered, &mut app, &stop, |_| false)?;
    if args.json.json {
        output::json_line(
            &json!({ "prefix": under.to_string(), "answered": app.answered, "refused": app.refused }),
        );
    } else {
        output::line(&format!("{} answered", app.answered));
    }
    Ok(())
}

struct Server {
    under: Name,
    freshness: Duration,
    content: Vec<u8>,
    answered: u64,
    refused: u64,
}

impl App for Server {
    fn on_packet(&mut self, _now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let token = packet.pit_token;
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let name = interest.name_owned();
        if name.len() <= self.under.len() || !self.under.is_prefix_of(&name) {
            self.refused += 1;
            out.push(NetPacket::nack(NackReason::NoRoute, interest).with_pit_token(token));
            return;
        }
        let wire = Data::builder(&name)
            .freshness(self.freshness)
            .content(&self.content)
            .sign(&SigningKey::DigestSha256);
        match Data::parse(wire) {
            Ok(data) => {
                self.answered += 1;
                out.push(NetPacket::data(data).with_pit_token(token));
            }
            Err(error) => tracing::error!(%error, %name, "Data: encoding failed"),
        }
    }
}
