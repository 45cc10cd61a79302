//! One dataset of a forwarder, all of its segments.

use std::time::Duration;

use ndn_endpoint::{ConsumerConfig, ExchangeError, FetchConfig, FetchError, Find, VerifyPolicy};
use ndn_io::Client;
use ndn_packet::Name;

use crate::error::CliError;
use crate::forwarder;
use crate::transfer::{GatherError, gather};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(4);
/// Bytes of a dataset: the faces of 200,000 neighbours.
const MAX_DATASET_BYTES: usize = 64 << 20;

/// Fetches a dataset, all of its segments.
///
/// # Errors
/// There is no answer, or the forwarder went away.
pub fn read(client: &mut Client, name: &Name) -> Result<Vec<u8>, CliError> {
    tracing::debug!(%name, face = %client.uri(), "requesting a dataset");
    let config = FetchConfig {
        find: Find::FirstSegment,
        consumer: ConsumerConfig {
            give_up_after: PATIENCE,
            verify: VerifyPolicy::None,
            seed: forwarder::seed(),
            ..ConsumerConfig::new(name.clone())
        },
        ..FetchConfig::new(name.clone())
    };
    gather(client, config, MAX_DATASET_BYTES).map_err(|error| match error {
        GatherError::Client(error) => forwarder::client_error(client.uri(), &error),
        GatherError::Fetch(error) => forwarder::no_answer(client.uri(), silence(name, &error)),
        GatherError::TooLong(most) => {
            let cause = format!("has more than {most} bytes");
            CliError::failed(format!("answer to {name}"), cause)
        }
    })
}

fn silence(name: &Name, error: &FetchError) -> String {
    match error {
        FetchError::Discovery(ExchangeError::Nack { reason, .. }) => {
            format!("{name} was refused ({reason})")
        }
        FetchError::Discovery(_) => format!("no answer to {name} within {PATIENCE:?}"),
        other => other.to_string(),
    }
}
