//! What can be typed after `trunkline keygen`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::JsonArg;

/// `trunkline keygen …`
#[derive(Debug, Subcommand)]
pub enum KeygenCommand {
    /// A secret for --sign and --verify: 32 bytes, in hex
    Hmac(KeyFileArgs),
    /// A key for --sign and --verify: ECDSA over P-256, PKCS#8 in PEM
    Ecdsa(KeyFileArgs),
    /// A key for --sign and --verify: Ed25519, PKCS#8 in PEM
    Ed25519(KeyFileArgs),
    /// The CA of a cluster, for TLS between its hosts and routers: ca.crt and ca.key
    Ca(CaArgs),
    /// A certificate of that CA for a host: NAME.crt and NAME.key
    Host(HostArgs),
}

/// `trunkline keygen hmac`, `ecdsa` and `ed25519`
#[derive(Debug, Args)]
pub struct KeyFileArgs {
    /// Where to; the public half goes beside it as FILE.pub
    pub file: PathBuf,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline keygen ca`
#[derive(Debug, Args)]
pub struct CaArgs {
    /// The folder of ca.crt and ca.key
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub directory: PathBuf,
    /// How the CA is called
    #[arg(long, value_name = "TEXT", default_value = "Trunkline cluster CA")]
    pub name: String,
    /// How long its certificate is valid
    #[arg(long, value_name = "N", default_value_t = 3650,
          value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: u32,
    /// Replace the files that are there: certificates of the CA that was there are worth nothing then
    #[arg(long)]
    pub force: bool,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline keygen host`
#[derive(Debug, Args)]
pub struct HostArgs {
    /// The host's name, by which others connect to it and rules name it; then further names and
    /// addresses of it
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// The folder of ca.crt and ca.key
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub ca: PathBuf,
    /// The folder of NAME.crt and NAME.key
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub directory: PathBuf,
    /// How long the certificate is valid; no longer than the CA's
    #[arg(long, value_name = "N", default_value_t = 365,
          value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
    /// Replace the files that are there
    #[arg(long)]
    pub force: bool,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// Kinds of keys that sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A shared secret.
    Hmac,
    /// ECDSA over P-256.
    Ecdsa,
    /// Ed25519.
    Ed25519,
}
