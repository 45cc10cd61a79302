//! Commands and datasets of one forwarder.

use std::cell::RefCell;

use ndn_forwarder::mgmt::{
    self, ControlParameters, ControlResponse, CsInfo, Dataset, FaceQueryFilter, FaceStatus,
    GeneralStatus, RibEntry, Scope, StrategyChoice,
};
use ndn_io::Client;
use ndn_packet::{DecodeError, SigningKey};

use super::exchange;
use crate::args::FaceArg;
use crate::error::CliError;
use crate::forwarder::{self, Target};

/// Asks one forwarder. Its answers are taken unverified: it is on this host, at an address that
/// only it may listen on, and signs with a key of its own making.
pub struct Manager {
    client: RefCell<Client>,
    key: SigningKey,
}

impl Manager {
    /// Connects.
    ///
    /// # Errors
    /// There is no forwarder.
    pub fn new(face: &FaceArg) -> Result<Self, CliError> {
        let target = Target::find(face)?;
        Ok(Manager {
            key: target.command_key.load()?,
            client: target.connect()?.into(),
        })
    }

    /// Sends a command.
    ///
    /// # Errors
    /// It was not answered. That it was refused is for [`accepted`] to say.
    pub fn command(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlResponse, CliError> {
        let mut client = self.client.borrow_mut();
        client
            .command(module, verb, parameters, &self.key)
            .map_err(|e| forwarder::client_error(client.uri(), &e))
    }

    /// The general status.
    ///
    /// # Errors
    /// It was not answered, or not understood.
    pub fn general_status(&self) -> Result<GeneralStatus, CliError> {
        self.read(GeneralStatus::NAME, GeneralStatus::decode)
    }

    /// The faces.
    ///
    /// # Errors
    /// As above.
    pub fn faces(&self) -> Result<Vec<FaceStatus>, CliError> {
        self.read(FaceStatus::NAME, FaceStatus::decode_all)
    }

    /// The faces whose remote address is `uri`, as they are now: what a forwarder keeps of an earlier answer does not
    /// count.
    ///
    /// # Errors
    /// As above.
    pub fn faces_to(&self, uri: &str) -> Result<Vec<FaceStatus>, CliError> {
        let filter = FaceQueryFilter {
            uri: Some(String::from(uri)),
            ..FaceQueryFilter::default()
        };
        let name = mgmt::dataset_name(Scope::Localhost, "faces/query")
            .append_generic(filter.encode_unlike_others(forwarder::seed()));
        let content = exchange::read(&mut self.client.borrow_mut(), &name)?;
        let mut faces = FaceStatus::decode_all(&content).map_err(|e| strange("faces/query", &e))?;
        // A forwarder that does not know the filter may answer with all.
        faces.retain(|face| filter.matches(face));
        Ok(faces)
    }

    /// The routes.
    ///
    /// # Errors
    /// As above.
    pub fn rib(&self) -> Result<Vec<RibEntry>, CliError> {
        self.read(RibEntry::NAME, RibEntry::decode_all)
    }

    /// The strategies.
    ///
    /// # Errors
    /// As above.
    pub fn strategies(&self) -> Result<Vec<StrategyChoice>, CliError> {
        self.read(StrategyChoice::NAME, StrategyChoice::decode_all)
    }

    /// The content store.
    ///
    /// # Errors
    /// As above.
    pub fn cs_info(&self) -> Result<CsInfo, CliError> {
        let entries = self.read(CsInfo::NAME, CsInfo::decode_all)?;
        entries
            .first()
            .copied()
            .ok_or_else(|| strange(CsInfo::NAME, &DecodeError::Missing("CsInfo")))
    }

    fn read<T>(
        &self,
        dataset: &str,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, CliError> {
        let name = mgmt::dataset_name(Scope::Localhost, dataset);
        let content = exchange::read(&mut self.client.borrow_mut(), &name)?;
        decode(&content).map_err(|e| strange(dataset, &e))
    }
}

/// What was done, where it was done.
///
/// # Errors
/// It was refused; `about` says what.
pub fn accepted(response: ControlResponse, about: &str) -> Result<ControlParameters, CliError> {
    if (200..300).contains(&response.code) {
        Ok(response.body)
    } else {
        Err(refusal(&response, about))
    }
}

/// The refusal of `about` in words.
pub fn refusal(response: &ControlResponse, about: &str) -> CliError {
    let refused = CliError::failed(
        about,
        format!("the forwarder refused: {} {}", response.code, response.text),
    );
    match response.code {
        403 => refused
            .or("where it obeys one key alone (management.key), give that with --command-key"),
        _ => refused,
    }
}

fn strange(asked: &str, error: &DecodeError) -> CliError {
    CliError::failed(format!("answer to {asked}"), error)
        .or("see whether the forwarder speaks NFD's management protocol")
}
