//! The HTTP server, on a thread of its own.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::candidacy::Candidacy as Shared;
use super::listen::Listener;
use super::page;

/// Longest time that a client may take to send its head.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// An event is sent at least so often, so that a client that is gone is noticed.
const EVENT_EVERY: Duration = Duration::from_secs(10);

/// After the deadline, not at it.
const A_MOMENT: Duration = Duration::from_millis(1);

const JSON: &str = "application/json";

/// The text format of Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `listener` until the process ends.
pub(super) fn start(listener: Listener, shared: Arc<Shared>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(async {
            if let Err(error) = accept(listener, shared).await {
                tracing::error!(%error, "http is not served any more; the election goes on");
            }
        });
    })?;
    Ok(())
}

async fn accept(listener: Listener, shared: Arc<Shared>) -> std::io::Result<()> {
    match listener {
        Listener::Tcp(listener) => {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => converse(stream, false, shared.clone()),
                    Err(error) => out_of_descriptors(&error).await,
                }
            }
        }
        Listener::Unix(listener) => {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => converse(stream, true, shared.clone()),
                    Err(error) => out_of_descriptors(&error).await,
                }
            }
        }
    }
}

async fn out_of_descriptors(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be taken");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

fn converse(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, is_local: bool, shared: Arc<Shared>) {
    tokio::spawn(async move {
        let service = service_fn(|request: Request<hyper::body::Incoming>| {
            let answer = answer(&request, is_local, &shared);
            async move { Ok::<_, Infallible>(answer) }
        });
        let mut server = hyper::server::conn::http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
        if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
            tracing::debug!(%error, "an http connection broke");
        }
    });
}

fn answer<B>(request: &Request<B>, is_local: bool, shared: &Arc<Shared>) -> Response<Content> {
    // Load balancers like to probe with OPTIONS.
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    match (request.uri().path(), is_get) {
        ("/", true) if wants_page(request) => page(),
        // As the leader elector sidecar of old had it: the name of the leader.
        ("/", true) => {
            let leader = quoted(&shared.leader().unwrap_or_default());
            say(StatusCode::OK, JSON, format!("{{\"name\":{leader}}}\n"))
        }
        ("/leader", true) if shared.leads() => plain(StatusCode::OK, "leads"),
        ("/leader", true) => plain(StatusCode::SERVICE_UNAVAILABLE, "does not lead"),
        ("/v1/status", true) => say(StatusCode::OK, JSON, shared.status() + "\n"),
        ("/v1/events", true) => events(shared.clone()),
        ("/metrics", true) => say(StatusCode::OK, PROMETHEUS, shared.metrics()),
        ("/livez", true) if shared.is_stuck() => plain(StatusCode::SERVICE_UNAVAILABLE, "the loop is stuck"),
        ("/livez", true) => plain(StatusCode::OK, "alive"),
        ("/readyz", true) if shared.is_ready() => plain(StatusCode::OK, "ready"),
        ("/readyz", true) => plain(StatusCode::SERVICE_UNAVAILABLE, "not ready"),
        ("/v1/resign", _) if *request.method() != Method::POST => plain(StatusCode::METHOD_NOT_ALLOWED, "use POST"),
        ("/v1/resign", _) if !is_local => plain(StatusCode::FORBIDDEN, "only over a unix socket: --listen unix:PATH"),
        ("/v1/resign", _) if shared.resign() => plain(StatusCode::ACCEPTED, "resigning"),
        ("/v1/resign", _) => plain(StatusCode::CONFLICT, "does not lead"),
        (_, true) => {
            plain(StatusCode::NOT_FOUND, "there are /, /leader, /v1/status, /v1/events, /metrics, /livez and /readyz")
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "use GET"),
    }
}

fn wants_page<B>(request: &Request<B>) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

fn page() -> Response<Content> {
    let mut response = say(StatusCode::OK, "text/html; charset=utf-8", page::HTML.to_owned());
    let policy = HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    );
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

/// A status now, and another with every change.
fn events(shared: Arc<Shared>) -> Response<Content> {
    let changes = shared.changes();
    let stream = stream::unfold((shared, changes, true), |(shared, mut changes, first)| async move {
        if !first {
            // The deadline is a change that nobody tells of; and now and then the client sees that this one lives.
            let by_itself = shared.remaining().map_or(EVENT_EVERY, |left| EVENT_EVERY.min(left + A_MOMENT));
            let _ = tokio::time::timeout(by_itself, changes.changed()).await;
        }
        changes.mark_unchanged();
        let event = Bytes::from(format!("data: {}\n\n", shared.status()));
        Some((event, (shared, changes, false)))
    });
    response(StatusCode::OK, "text/event-stream", Content::Stream(stream.boxed()))
}

fn plain(status: StatusCode, text: &str) -> Response<Content> {
    say(status, "text/plain", format!("{text}\n"))
}

fn say(status: StatusCode, kind: &'static str, text: String) -> Response<Content> {
    response(status, kind, Content::Whole(Some(text.into())))
}

fn response(status: StatusCode, kind: &'static str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Every answer is of this moment.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// What an answer carries.
enum Content {
    Whole(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => {
                stream.as_mut().poll_next(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    /// A length that is known spares simple clients the chunks.
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
