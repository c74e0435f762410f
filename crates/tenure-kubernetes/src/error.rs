//! The only place that knows the client's errors.

use std::error::Error;
use std::fmt;
use std::io;

use kube::config::KubeconfigError;
use kube::core::Status;
use tenure_core::{LeaseName, Operation, StoreError, StoreErrorKind};

use StoreErrorKind::{Denied, Invalid, Malformed, Unavailable, Unknown, Unsupported};

/// The store's name in errors.
pub(crate) const STORE: &str = "kubernetes";

/// What a request may have done when no answer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
}

impl Effect {
    fn in_doubt(self) -> StoreErrorKind {
        match self {
            Self::Read => Unavailable,
            Self::Write => Unknown,
        }
    }
}

/// A request without an answer, or with one that says no.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: StoreErrorKind,
    detail: String,
    source: Option<Reported>,
}

impl Failure {
    pub(crate) fn new(kind: StoreErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), source: None }
    }

    /// Nothing came within the call's bound.
    pub(crate) fn silence(sent: bool, bound: std::time::Duration) -> Self {
        let kind = if sent { Unknown } else { Unavailable };
        Self::new(kind, format!("no answer within {bound:?}"))
    }

    /// What the API server or the way to it said.
    pub(crate) fn of_request(error: kube::Error, effect: Effect) -> Self {
        let (kind, detail) = match &error {
            kube::Error::Api(status) => of_status(status, effect),
            _ if is_refused_certificate(&error) => (
                Denied,
                "the server's certificate is not trusted: check the cluster's certificate authority".to_owned(),
            ),
            kube::Error::Auth(_) => (Denied, "the credentials cannot be read: check the kubeconfig's user".to_owned()),
            _ if is_unconnected(&error) => (Unavailable, "no connection to the api server".to_owned()),
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => {
                (effect.in_doubt(), "the answer is not what an api server says".to_owned())
            }
            _ => (effect.in_doubt(), "the connection broke before the answer".to_owned()),
        };
        // What a login program printed may be the credentials.
        let source = (!matches!(error, kube::Error::Auth(_))).then(|| Reported(chain(&error)));
        Self { kind, detail, source }
    }

    /// A client that cannot be made.
    pub(crate) fn of_client(error: &kube::Error) -> Self {
        let detail = match error {
            kube::Error::TlsRequired => "this build has no tls: turn on the feature tls-rustls or tls-native",
            kube::Error::Auth(_) => "the credentials cannot be read: check the kubeconfig's user",
            _ => "no client can be made of the kubeconfig: check its certificates and keys",
        };
        let kind = if matches!(error, kube::Error::TlsRequired) { Unsupported } else { Denied };
        Self::new(kind, detail)
    }

    /// A configuration that cannot be read. Of what it holds nothing is repeated: there are keys in it.
    pub(crate) fn of_kubeconfig(error: KubeconfigError) -> Self {
        let detail = match &error {
            KubeconfigError::ReadConfig(error, path) => format!("{} cannot be read: {}", path.display(), error.kind()),
            KubeconfigError::FindPath => {
                "there is no kubeconfig, and this is no pod: set KUBECONFIG, or kubeconfig=FILE in the url".to_owned()
            }
            KubeconfigError::CurrentContextNotSet => {
                "the kubeconfig has no current context: name one by context=NAME".to_owned()
            }
            KubeconfigError::LoadContext(name) => format!("the kubeconfig has no context {name:?}"),
            KubeconfigError::LoadClusterOfContext(name) => format!("the kubeconfig has no cluster {name:?}"),
            _ => "the kubeconfig cannot be understood: `kubectl config view` shows what is wrong with it".to_owned(),
        };
        Self::new(Invalid, detail)
    }

    pub(crate) fn into_error(self, operation: Operation, lease: Option<&LeaseName>) -> StoreError {
        let mut error = StoreError::new(self.kind, operation, STORE).with_detail(self.detail);
        if let Some(lease) = lease {
            error = error.with_lease(lease);
        }
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }

    pub(crate) fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

/// What an API server's refusal means.
fn of_status(status: &Status, effect: Effect) -> (StoreErrorKind, String) {
    let message = &status.message;
    match status.code {
        401 => (Denied, "the server does not take the credentials".to_owned()),
        403 => {
            (Denied, format!("a right is missing ({message}): see the Role in the documentation of tenure-kubernetes"))
        }
        404 if message.contains("namespaces") => {
            (Malformed, format!("{message}: create the namespace, or name another"))
        }
        404 | 405 | 406 | 415 | 501 => (
            Unsupported,
            format!(
                "the server has no leases of coordination.k8s.io/v1 ({message}): Kubernetes 1.14 or newer is needed"
            ),
        ),
        400 | 413 | 422 => (Invalid, format!("the server refuses the object ({message})")),
        // Refused before anything was done.
        409 | 410 | 429 => (Unavailable, format!("the server refused for now ({message})")),
        code => (effect.in_doubt(), format!("the server failed with {code} ({message})")),
    }
}

/// Whether the server takes this login not, or not any more.
pub(crate) fn is_refused_login(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 401)
}

/// Whether the connection ended since the server's certificate is not trusted; TLS libraries say so in words only.
pub(crate) fn is_refused_certificate(error: &kube::Error) -> bool {
    is_unconnected(error) && {
        let text = chain(error).to_lowercase();
        text.contains("invalid peer certificate") || text.contains("certificate verify failed")
    }
}

/// Whether no connection came about, so that nothing can have been sent.
fn is_unconnected(error: &kube::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<hyper_util::client::legacy::Error>().is_some_and(|error| error.is_connect()) {
            return true;
        }
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        next = error.source();
    }
    false
}

/// An error and all that caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// What the client reported, as text: its own error types would be part of this crate's promise.
#[derive(Debug)]
struct Reported(String);

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Reported {}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: u16, message: &str, effect: Effect) -> StoreErrorKind {
        let status = Status::failure(message, "").with_code(code);
        Failure::of_request(kube::Error::Api(status.boxed()), effect).kind()
    }

    #[test]
    fn a_refusal_tells_what_is_known_about_a_write() {
        for (code, message, expected) in [
            (401, "Unauthorized", Denied),
            (403, "leases is forbidden", Denied),
            (404, "namespaces \"x\" not found", Malformed),
            (404, "the server could not find the requested resource", Unsupported),
            (422, "spec.leaseDurationSeconds must be greater than 0", Invalid),
            (429, "too many requests", Unavailable),
            (500, "etcdserver: request timed out", Unknown),
            (503, "unavailable", Unknown),
            (504, "timeout", Unknown),
        ] {
            assert_eq!(kind(code, message, Effect::Write), expected, "{code} {message}");
        }
        assert_eq!(kind(504, "timeout", Effect::Read), Unavailable);
    }

    #[test]
    fn what_a_login_program_printed_is_not_repeated() {
        let error = kube::Error::Auth(kube::client::AuthError::AuthExec("canary".to_owned()));
        let error = Failure::of_request(error, Effect::Read).into_error(Operation::Read, None);
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}
