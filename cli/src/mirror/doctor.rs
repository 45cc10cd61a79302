//! `trunkline mirror doctor`.

use std::io;

use serde_json::json;
use trunkline_mirror::doctor::{Facts, Finding, Level, check, fix};

use crate::args::DoctorArgs;
use crate::error::{CliError, Exit, io_cause};
use crate::output::{self, Table};

/// Checks this host, and changes it if told to.
///
/// # Errors
/// Something keeps mirrored replication from working here, or a change is refused.
pub fn doctor(args: &DoctorArgs) -> Result<(), CliError> {
    let (config, pins) = super::pins(&args.pins)?;
    let names = match (&args.interface[..], config) {
        ([], Some(config)) => config.agent.interfaces,
        (names, _) => names.to_vec(),
    };
    let look = || check(&Facts::read(pins.folder(), &names));
    let mut findings = look();
    let mut changes = Vec::new();
    if args.fix {
        let fixes = findings
            .iter()
            .filter_map(|f| Some((f.check, f.fix.clone()?)));
        for (what, change) in fixes {
            match fix(&change) {
                Ok(done) => changes.push(done),
                Err(error) => return Err(refused(what, &error)),
            }
        }
        if !changes.is_empty() {
            findings = look();
        }
    }
    if args.pins.json.json {
        output::json(&json!({"findings": findings, "changes": changes}));
    } else {
        for change in &changes {
            output::line(change);
        }
        output::line(render(&findings).trim_end());
    }
    let wrong = findings.iter().filter(|f| f.level == Level::Error).count();
    match wrong {
        0 => Ok(()),
        n => Err(CliError::failed(
            "this host",
            format!("{n} of these keep mirrored replication from working"),
        )
        .or("see what to do behind each")),
    }
}

fn refused(what: &str, error: &io::Error) -> CliError {
    let failed = CliError::new(Exit::Failed, what, io_cause(error));
    match error.kind() {
        io::ErrorKind::PermissionDenied => failed.or("run as root"),
        _ => failed.or("change it by hand, as it says without --fix"),
    }
}

fn render(findings: &[Finding]) -> String {
    let mut table = Table::new(&["", "check", "found"]);
    for finding in findings {
        let level = match finding.level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "ERROR",
        };
        table.row(vec![
            level.to_owned(),
            finding.check.to_owned(),
            finding.found.clone(),
        ]);
        if let Some(remedy) = &finding.remedy {
            table.row(vec![String::new(), String::new(), format!("→ {remedy}")]);
        }
    }
    table.render()
}
