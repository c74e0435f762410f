//! A client whose writes go astray: what a proxy of encrypted bytes cannot single out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tenure_kubernetes::kube;
use tokio::time::sleep;
use tower::service_fn;

/// What becomes of writes; reads pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Pass,
    LoseRequests,
    LoseReplies,
    DelayRequests(Duration),
    DelayReplies(Duration),
    /// The server decides, and the client is told this code.
    AnswerAfterwards(u16),
    /// The server is not asked, reads neither, and the client is told this code.
    AnswerInstead(u16),
}

#[derive(Clone, Default)]
pub struct Wire(Arc<Mutex<Mode>>);

impl Wire {
    pub fn set(&self, mode: Mode) {
        *self.0.lock().unwrap() = mode;
    }

    fn mode(&self) -> Mode {
        *self.0.lock().unwrap()
    }

    /// A client that reaches the server through this wire by way of `inner`.
    pub fn around(&self, inner: &Client) -> Client {
        let (wire, carrier) = (self.clone(), inner.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (wire, carrier) = (wire.clone(), carrier.clone());
            async move { wire.carry(&carrier, request).await }
        });
        Client::new(service, inner.default_namespace())
    }

    async fn carry(&self, inner: &Client, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let mode = self.mode();
        if let Mode::AnswerInstead(code) = mode {
            return Ok(status(code));
        }
        if !matches!(*request.method(), Method::PUT | Method::POST) {
            return inner.send(request).await;
        }
        match mode {
            Mode::LoseRequests => std::future::pending().await,
            Mode::DelayRequests(delay) => sleep(delay).await,
            _ => {}
        }
        // The server's work does not end with the caller's patience.
        let carrier = inner.clone();
        let answer = tokio::spawn(async move { carrier.send(request).await }).await.unwrap();
        match mode {
            Mode::LoseReplies => std::future::pending().await,
            Mode::DelayReplies(delay) => sleep(delay).await,
            Mode::AnswerAfterwards(code) => return Ok(status(code)),
            _ => {}
        }
        answer
    }
}

fn status(code: u16) -> Response<Body> {
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"on purpose","reason":"Purpose","code":{code}}}"#
    );
    Response::builder().status(code).body(Body::from(body.into_bytes())).unwrap()
}
