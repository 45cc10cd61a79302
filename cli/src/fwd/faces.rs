//! `trunkline fwd face …`.

use ndn_forwarder::mgmt::{ControlParameters, FaceStatus};
use ndn_io::FaceUri;
use serde_json::{Value, json};

use crate::args::{FaceCommand, Persistency};
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
            ask,
        } => {
            let manager = Manager::new(&ask.face)?;
            let made = create(&manager, &uri, persistency, mtu)?;
            if ask.json.json {
                output::json(
                    &json!({ "face_id": made.face_id, "uri": made.uri, "created": made.created }),
                );
            } else {
                let word = if made.created {
                    "created"
                } else {
                    "is there already"
                };
                output::line(&format!("face {} {} {word}", made.face_id, made.uri));
            }
            Ok(())
        }
        FaceCommand::Destroy { face_id, ask } => {
            let manager = Manager::new(&ask.face)?;
            let face = find(&manager, &face_id)?;
            let parameters = ControlParameters {
                face_id: Some(face),
                ..Default::default()
            };
            accepted(
                manager.command("faces", "destroy", &parameters)?,
                &format!("face {face_id}"),
            )?;
            if ask.json.json {
                output::json(&json!({ "face_id": face, "destroyed": true }));
            } else {
                output::line(&format!("face {face} destroyed"));
            }
            Ok(())
        }
    }
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
pub fn create(
    manager: &Manager,
    uri: &str,
    persistency: Persistency,
    mtu: Option<u64>,
) -> Result<Made, CliError> {
    let canonical = canonical(uri)?;
    let parameters = ControlParameters {
        uri: Some(canonical.clone()),
        persistency: Some(match persistency {
            Persistency::Persistent => 0,
            Persistency::Permanent => 2,
        }),
        mtu,
        ..Default::default()
    };
    let response = manager.command("faces", "create", &parameters)?;
    let created = response.code == CREATED;
    let face_id = match response.body.face_id {
        Some(id) if created || response.code == EXISTS => id,
        _ => return Err(refusal(&response, &format!("face {uri}"))),
    };
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
    let canonical = canonical(face)?;
    manager
        .faces()?
        .into_iter()
        .find(|f| f.uri == face || f.uri == canonical)
        .map(|f| f.face_id)
        .ok_or_else(|| {
            CliError::failed(format!("face {face}"), "there is none")
                .or("see trunkline fwd face list")
        })
}

fn table(faces: &[FaceStatus]) -> Table {
    let mut table = Table::new(&[
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
    ]);
    for f in faces {
        let p = &f.packets;
        table.row(vec![
            f.face_id.to_string(),
            f.uri.clone(),
            f.local_uri.clone(),
            scope(f).to_owned(),
            persistency(f).to_owned(),
            p.in_interests.to_string(),
            p.in_data.to_string(),
            p.out_interests.to_string(),
            p.out_data.to_string(),
            f.in_bytes.to_string(),
            f.out_bytes.to_string(),
        ]);
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
        ("flags".to_owned(), f.flags.into()),
    ]);
    Value::Object(facts)
}
