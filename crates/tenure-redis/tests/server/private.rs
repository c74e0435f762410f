//! A server of one test alone, to restart, freeze and configure.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure_redis::redis;

use crate::bench::eventually;

pub(crate) struct PrivateServer {
    port: u16,
    options: Vec<String>,
    folder: tempfile::TempDir,
    child: Child,
}

impl PrivateServer {
    /// Starts `redis-server` (or what `TENURE_TEST_REDIS_SERVER` names) with `options` and an append-only file.
    pub(crate) async fn start(options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let child = spawn(port, folder.path(), &options);
        let server = Self { port, options, folder, child };
        server.ready().await;
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) async fn restart(&mut self) {
        self.child = spawn(self.port, self.folder.path(), &self.options);
        self.ready().await;
    }

    async fn ready(&self) {
        let client = redis::Client::open(self.url()).unwrap();
        eventually("the private server answers", Duration::from_secs(20), async || {
            let Ok(mut connection) = client.get_multiplexed_async_connection().await else { return false };
            let answer = redis::cmd("PING").query_async::<String>(&mut connection).await;
            // One that wants a password is there too.
            answer.map_or_else(|error| error.code() == Some("NOAUTH"), |_| true)
        })
        .await;
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, folder: &std::path::Path, options: &[String]) -> Child {
    let program = std::env::var("TENURE_TEST_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
    Command::new(&program)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir"])
        .arg(folder)
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}; install redis-server or set TENURE_TEST_REDIS_SERVER"))
}
