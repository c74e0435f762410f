//! Which store to use, and opening it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tenure::{LeaseStore, StoreError, StoreUrl};

use crate::args::StoreArgs;

/// The environment variable that holds the store's URL.
pub(crate) const URL_VARIABLE: &str = "TENURE_STORE";
/// The environment variable that names a file which holds the store's URL.
const FILE_VARIABLE: &str = "TENURE_STORE_FILE";

/// What has a meaning in a URL's path, or none anywhere.
const NOT_IN_A_PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'?').add(b'\\');

/// Finds out which store is meant: a flag wins over the environment, and that over the user's own file.
///
/// # Errors
///
/// Says what cannot be read or created, and how else a store can be named. Never repeats a URL.
pub(crate) fn choose(args: &StoreArgs) -> anyhow::Result<StoreUrl> {
    if let Some(url) = &args.url {
        return parse(url, "--store");
    }
    if let Some(file) = &args.file {
        return from_file(file, "--store-file");
    }
    if let Some(url) = variable(URL_VARIABLE) {
        let url = url.into_string().map_err(|_| anyhow::anyhow!("{URL_VARIABLE} is not utf-8"))?;
        return parse(&url, URL_VARIABLE);
    }
    if let Some(file) = variable(FILE_VARIABLE) {
        return from_file(Path::new(&file), FILE_VARIABLE);
    }
    default_store()
}

/// Opens the store.
///
/// # Errors
///
/// As [`tenure::connect`].
pub(crate) async fn open(url: &StoreUrl) -> Result<Arc<dyn LeaseStore>, StoreError> {
    tenure::connect(url.expose()).await
}

fn parse(url: &str, from: &str) -> anyhow::Result<StoreUrl> {
    StoreUrl::parse(url).with_context(|| format!("{from} cannot be used"))
}

fn from_file(file: &Path, from: &str) -> anyhow::Result<StoreUrl> {
    let text = fs::read_to_string(file).with_context(|| format!("{from}: cannot read {}", file.display()))?;
    match text.lines().next().map(str::trim) {
        None | Some("") => bail!("{from}: the first line of {} is empty; it must be the store's url", file.display()),
        Some(url) => parse(url, &format!("{from}: the first line of {}", file.display())),
    }
}

/// A variable that is set to nothing is not set.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// A SQLite file of this user, so that one host needs nothing set up.
fn default_store() -> anyhow::Result<StoreUrl> {
    const OTHERWISE: &str = "name another store with --store, --store-file or TENURE_STORE";
    let directory = state_directory().with_context(|| {
        format!("the user's state directory is not known: set HOME or XDG_STATE_HOME, or {OTHERWISE}")
    })?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("cannot create {}; {OTHERWISE}", directory.display()))?;
    let file = directory.join("leases.db");
    let path = file.to_str().with_context(|| format!("{} is not utf-8; {OTHERWISE}", file.display()))?;
    Ok(StoreUrl::parse(&format!("sqlite://{}", utf8_percent_encode(path, NOT_IN_A_PATH)))?)
}

fn state_directory() -> Option<PathBuf> {
    // The XDG specification: a relative path is to be ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("tenure"))
}
