//! `trunkline fwd face …`.

use ndn_forwarder::mgmt::{ControlParameters, FLAG_LP_RELIABILITY, FaceStatus};
use ndn_io::FaceUri;
use serde_json::{Value, json};

use crate::args::{FaceCommand, Persistency, Switch};
use crate::error::{CliError, io_cause};
use crate::forwarder;
use crate::nfd::{Manager, accepted, refusal};
use crate::output::{self, Table};

/// Answer codes of face commands: made, or there already.
const CREATED: u64 = 200;
const EXISTS: u64 = 409;

/// Runs the subcommand.
///
/// # Errors
/// No forwarder, or one that refuses.
pub fn run(command: FaceCommand) -> Result<(), CliError> {
    match command {
        FaceCommand::List(ask) => {
            let faces = Manager::new(&ask.face)?.faces()?;
            if ask.json.json {
                output::json(&faces.iter().map(facts).collect::<Vec<_>>());
            } else {
                table(&faces).print("no faces");
            }
            Ok(())
        }
        FaceCommand::Create {
            uri,
            persistency,
            mtu,
            reliability,
            ask,
        } => {
            let manager = Manager::new(&ask.face)?;
            let wanted = Wanted {
                persistency,
                mtu,
                reliability: reliability.map(|switch| switch == Switch::On),
            };
            let made = create(&manager, &uri, &wanted)?;
            if ask.json.json {
                output::json(
                    &json!({ "face_id": made.face_id, "uri": made.uri, "created": made.created }),
                );
            } else {
                let word = if made.created {
                    "created"
                } else {
                    "already exists"
                };
                output::line(&format!("face {} {} {word}", made.face_id, made.uri));
            }
            Ok(())
        }
        FaceCommand::Destroy { face_id, ask } => {
            let manager = Manager::new(&ask.face)?;
            let face = find(&manager, &face_id)?;
            destroy(&manager, face, &face_id)?;
            if ask.json.json {
                output::json(&json!({ "face_id": face, "destroyed": true }));
            } else {
                output::line(&format!("face {face} destroyed"));
            }
            Ok(())
        }
    }
}

/// What a face is to be like.
pub struct Wanted {
    /// What becomes of it when its link fails.
    pub persistency: Persistency,
    /// The largest packet that its link takes, in bytes.
    pub mtu: Option<u64>,
    /// Whether lost packets are sent again on the link; `None` leaves it to the forwarder.
    pub reliability: Option<bool>,
}

/// Closes the face of this number; `named` is what it is called in an error.
fn destroy(manager: &Manager, face_id: u64, named: &str) -> Result<(), CliError> {
    let parameters = ControlParameters {
        face_id: Some(face_id),
        ..Default::default()
    };
    let response = manager.command("faces", "destroy", &parameters)?;
    accepted(response, &format!("face {named}")).map(drop)
}

/// A face that was made or found.
pub struct Made {
    /// Its number.
    pub face_id: u64,
    /// Its remote URI.
    pub uri: String,
    /// Whether it was made just now.
    pub created: bool,
}

/// Makes a face, or finds the one to the same place.
///
/// # Errors
/// A URI that is none, or a forwarder that refuses it.
pub fn create(manager: &Manager, uri: &str, wanted: &Wanted) -> Result<Made, CliError> {
    let canonical = canonical(uri)?;
    let parameters = ControlParameters {
        uri: Some(canonical.clone()),
        persistency: Some(match wanted.persistency {
            Persistency::Persistent => 0,
            Persistency::Permanent => 2,
        }),
        mtu: wanted.mtu,
        flags: wanted
            .reliability
            .map(|on| if on { FLAG_LP_RELIABILITY } else { 0 }),
        mask: wanted.reliability.map(|_| FLAG_LP_RELIABILITY),
        ..Default::default()
    };
    let response = manager.command("faces", "create", &parameters)?;
    let created = response.code == CREATED;
    let face_id = match response.body.face_id {
        Some(id) if created || response.code == EXISTS => id,
        _ => return Err(refusal(&response, &format!("face {uri}"))),
    };
    let has_reliability = response
        .body
        .flags
        .map(|flags| flags & FLAG_LP_RELIABILITY != 0);
    if let (Some(wanted), Some(has)) = (wanted.reliability, has_reliability)
        && wanted != has
    {
        if created {
            destroy(manager, face_id, uri)?;
        }
        let cause = match wanted {
            true => "the forwarder makes it without link reliability",
            false => "it exists already, with link reliability",
        };
        return Err(CliError::failed(format!("face {uri}"), cause)
            .or("leave --reliability out, or see which faces the forwarder has it on"));
    }
    Ok(Made {
        face_id,
        uri: response.body.uri.unwrap_or(canonical),
        created,
    })
}

/// The form of a URI that forwarders accept: a literal address, the IP version in the scheme.
fn canonical(uri: &str) -> Result<String, CliError> {
    let face = FaceUri::parse(uri).map_err(|e| forwarder::bad_uri("face", uri, &e))?;
    let canonical = face
        .resolve()
        .map_err(|e| CliError::failed(uri, io_cause(&e)).or("check the host's name"))?;
    Ok(canonical.to_string())
}

/// The number of the face that a number or a URI names.
///
/// # Errors
/// There is none.
pub fn find(manager: &Manager, face: &str) -> Result<u64, CliError> {
    if let Ok(id) = face.parse() {
        return Ok(id);
    }
    let thing = format!("face {face}");
    // Of addresses that are no face to be made here (fd://12), forwarders have their own form.
    let canonical = match FaceUri::parse(face) {
        Err(_) if face.contains("://") => String::from(face),
        _ => canonical(face)?,
    };
    match manager.faces_to(&canonical)?.as_slice() {
        [] => Err(CliError::failed(thing, "there is none").or("see trunkline fwd face list")),
        [found] => Ok(found.face_id),
        many => {
            let ids: Vec<String> = many.iter().map(|face| face.face_id.to_string()).collect();
            let cause = format!("there are several: {}", ids.join(", "));
            Err(CliError::failed(thing, cause).or("give the number of one"))
        }
    }
}

fn table(faces: &[FaceStatus]) -> Table {
    let counts_rejects = faces.iter().any(|face| face.rejected.is_some());
    let mut columns = vec![
        "id",
        "remote",
        "local",
        "scope",
        "persistency",
        "int in",
        "data in",
        "int out",
        "data out",
        "bytes in",
        "bytes out",
    ];
    if counts_rejects {
        columns.push("rejected");
    }
    let mut table = Table::new(&columns);
    for f in faces {
        let p = &f.packets;
        let mut row = vec![
            f.face_id.to_string(),
            match f.peer_names.as_slice() {
                [] => f.uri.clone(),
                names => format!("{} ({})", f.uri, names.join(", ")),
            },
            f.local_uri.clone(),
            scope(f).to_owned(),
            persistency(f).to_owned(),
            p.in_interests.to_string(),
            p.in_data.to_string(),
            p.out_interests.to_string(),
            p.out_data.to_string(),
            f.in_bytes.to_string(),
            f.out_bytes.to_string(),
        ];
        if counts_rejects {
            row.push(f.rejected.unwrap_or(0).to_string());
        }
        table.row(row);
    }
    table
}

fn word(words: [&'static str; 3], number: u64) -> &'static str {
    usize::try_from(number)
        .ok()
        .and_then(|n| words.get(n).copied())
        .unwrap_or("unknown")
}

fn scope(face: &FaceStatus) -> &'static str {
    word(["non-local", "local", "unknown"], face.scope)
}

fn persistency(face: &FaceStatus) -> &'static str {
    word(["persistent", "on-demand", "permanent"], face.persistency)
}

fn facts(f: &FaceStatus) -> Value {
    let mut facts = super::status::packets(&f.packets);
    facts.extend([
        ("face_id".to_owned(), f.face_id.into()),
        ("uri".to_owned(), f.uri.clone().into()),
        ("local_uri".to_owned(), f.local_uri.clone().into()),
        ("scope".to_owned(), scope(f).into()),
        ("persistency".to_owned(), persistency(f).into()),
        (
            "link_type".to_owned(),
            word(["point-to-point", "multi-access", "ad-hoc"], f.link_type).into(),
        ),
        ("mtu".to_owned(), f.mtu.into()),
        ("expires_ms".to_owned(), f.expires_ms.into()),
        ("in_bytes".to_owned(), f.in_bytes.into()),
        ("out_bytes".to_owned(), f.out_bytes.into()),
        ("pending_in".to_owned(), f.pending_in.into()),
        ("pending_out".to_owned(), f.pending_out.into()),
        ("rejected".to_owned(), f.rejected.into()),
        ("flags".to_owned(), f.flags.into()),
        ("peer_names".to_owned(), f.peer_names.clone().into()),
    ]);
    Value::Object(facts)
}
