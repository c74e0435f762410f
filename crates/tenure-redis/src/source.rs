//! Where connections come from: one server, the master that sentinels name, or a cluster.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, MultiplexedConnection, PubSub};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, IntoConnectionInfo, ProtocolVersion, PushInfo,
    PushKind, RedisConnectionInfo, RedisError, RedisResult, Value,
};
use tenure_core::Invalid;
use tokio::sync::Mutex;

use crate::config::{Address, Bounds, Topology};
use crate::tls::{self, Tls};

/// Opens connections.
pub(crate) enum Source {
    Server(Box<Client>),
    Sentinel(Box<Mutex<SentinelClient>>),
    Cluster { client: Box<ClusterClient>, nodes: Nodes },
}

/// Cluster nodes by address, asked in turn: every node hears what is published on any.
pub(crate) struct Nodes {
    clients: Vec<Client>,
    next: AtomicUsize,
}

/// Why a source cannot be made of an address.
pub(crate) enum Refusal {
    Invalid(Invalid),
    Client(RedisError),
}

/// A connection that runs commands.
#[derive(Clone)]
pub(crate) enum Connection {
    Multiplexed(MultiplexedConnection),
    Manager(Box<ConnectionManager>),
    Cluster(ClusterConnection),
}

/// Where a command goes that concerns no key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// The only server, or any node of a cluster.
    Any,
    /// The cluster node at this address.
    At(String, u16),
}

impl Source {
    pub(crate) fn open(address: &Address) -> Result<Self, Refusal> {
        let tls = address.tls.as_ref().map(Tls::read).transpose().map_err(Refusal::Invalid)?;
        Self::build(address, tls.as_ref()).map_err(Refusal::Client)
    }

    fn build(address: &Address, tls: Option<&Tls>) -> RedisResult<Self> {
        let client = |(host, port): &(String, u16)| {
            let info = server_info(address, host, *port)?;
            tls.map_or_else(|| Client::open(info.clone()), |tls| tls.client(info.clone()))
        };
        match &address.topology {
            // A parsed address has a host.
            Topology::Single => Ok(Self::Server(Box::new(client(&address.hosts[0])?))),
            Topology::Cluster => {
                let nodes = Nodes::new(address.hosts.iter().map(client).collect::<RedisResult<_>>()?);
                Ok(Self::Cluster { client: Box::new(cluster_client(address, tls)?), nodes })
            }
            Topology::Sentinel { service, username, password } => {
                let hosts = address.hosts.iter().map(|(host, port)| tls::address(host, *port, tls.is_some()));
                let mut builder = SentinelClientBuilder::new(hosts, service, SentinelServerType::Master)?
                    .set_client_to_redis_db(address.database)
                    .set_client_to_redis_protocol(address.protocol)
                    .set_client_to_redis_tcp_settings(tcp_settings(TcpSettings::default(), &address.bounds))
                    .set_client_to_sentinel_tcp_settings(tcp_settings(TcpSettings::default(), &address.bounds));
                if let Some(username) = &address.username {
                    builder = builder.set_client_to_redis_username(username);
                }
                if let Some(password) = &address.password {
                    builder = builder.set_client_to_redis_password(password);
                }
                if let Some(username) = username {
                    builder = builder.set_client_to_sentinel_username(username);
                }
                if let Some(password) = password {
                    builder = builder.set_client_to_sentinel_password(password);
                }
                if let Some(tls) = tls {
                    builder = tls.sentinel(builder)?;
                }
                Ok(Self::Sentinel(Box::new(Mutex::new(builder.build()?))))
            }
        }
    }

    /// A source of connections to the server of `client`, with the TCP settings that leases need.
    pub(crate) fn of_client(client: &Client, bounds: &Bounds) -> RedisResult<Self> {
        let info = client.get_connection_info().clone();
        let settings = tcp_settings(info.tcp_settings().clone(), bounds);
        Ok(Self::Server(Box::new(Client::open(info.set_tcp_settings(settings))?)))
    }

    pub(crate) fn of_sentinel(client: SentinelClient) -> Self {
        Self::Sentinel(Box::new(Mutex::new(client)))
    }

    pub(crate) fn of_cluster(client: ClusterClient) -> Self {
        Self::Cluster { client: Box::new(client), nodes: Nodes::new(Vec::new()) }
    }

    /// Opens a connection; `closed` is set once its server has hung up, where the protocol lets the client see that.
    pub(crate) async fn connect(&self, bounds: &Bounds, closed: Arc<AtomicBool>) -> RedisResult<Connection> {
        let client = match self {
            Self::Cluster { client, .. } => return client.get_async_connection().await.map(Connection::Cluster),
            Self::Server(client) => (**client).clone(),
            Self::Sentinel(sentinel) => sentinel.lock().await.async_get_client().await?,
        };
        // The link bounds each call itself, with the time for connecting in it.
        let mut config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(Some(bounds.connect()));
        if client.get_connection_info().redis_settings().protocol() == ProtocolVersion::RESP3 {
            config = config.set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    closed.store(true, Ordering::Release);
                }
                Ok::<(), redis::aio::SendError>(())
            });
        }
        client.get_multiplexed_async_connection_with_config(&config).await.map(Connection::Multiplexed)
    }

    /// Opens a connection that hears what is published.
    pub(crate) async fn listen(&self) -> RedisResult<PubSub> {
        let client = match self {
            Self::Server(client) => (**client).clone(),
            Self::Sentinel(sentinel) => sentinel.lock().await.async_get_client().await?,
            Self::Cluster { nodes, .. } => {
                nodes.next().ok_or((ErrorKind::Client, "no node is known by address"))?.clone()
            }
        };
        client.get_async_pubsub().await
    }

    pub(crate) fn can_listen(&self) -> bool {
        !matches!(self, Self::Cluster { nodes, .. } if nodes.clients.is_empty())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server(_) => "server",
            Self::Sentinel(_) => "sentinel",
            Self::Cluster { .. } => "cluster",
        })
    }
}

impl Nodes {
    fn new(clients: Vec<Client>) -> Self {
        Self { clients, next: AtomicUsize::new(0) }
    }

    fn next(&self) -> Option<&Client> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.clients.get(turn.checked_rem(self.clients.len())?)
    }
}

impl Connection {
    pub(crate) async fn run(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = match self {
            Self::Multiplexed(connection) => connection.send_packed_command(command).await,
            Self::Manager(manager) => manager.send_packed_command(command).await,
            Self::Cluster(cluster) => cluster.req_packed_command(command).await,
        };
        answer.and_then(Value::extract_error)
    }

    pub(crate) async fn run_on(&mut self, node: &Node, command: Cmd) -> RedisResult<Value> {
        let Self::Cluster(cluster) = self else { return self.run(&command).await };
        let node = match node {
            Node::Any => SingleNodeRoutingInfo::RandomPrimary,
            Node::At(host, port) => SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port },
        };
        cluster.route_command(command, RoutingInfo::SingleNode(node)).await.and_then(Value::extract_error)
    }
}

impl Node {
    /// A key for the node in the count of unanswered calls, apart from those of the 16,384 hash slots.
    pub(crate) fn lane(&self) -> u16 {
        match self {
            Self::Any => u16::MAX,
            Self::At(host, port) => {
                16384 + crc16::State::<crc16::XMODEM>::calculate(host.as_bytes()).wrapping_add(*port) % 16384
            }
        }
    }
}

fn server_info(address: &Address, host: &str, port: u16) -> RedisResult<ConnectionInfo> {
    let mut redis = RedisConnectionInfo::default().set_db(address.database).set_protocol(address.protocol);
    if let Some(username) = &address.username {
        redis = redis.set_username(username);
    }
    if let Some(password) = &address.password {
        redis = redis.set_password(password);
    }
    let info = tls::address(host, port, address.tls.is_some()).into_connection_info()?;
    Ok(info.set_redis_settings(redis).set_tcp_settings(tcp_settings(TcpSettings::default(), &address.bounds)))
}

fn cluster_client(address: &Address, tls: Option<&Tls>) -> RedisResult<ClusterClient> {
    let nodes = address.hosts.iter().map(|(host, port)| server_info(address, host, *port));
    let mut builder = ClusterClientBuilder::new(nodes.collect::<RedisResult<Vec<_>>>()?)
        .tcp_settings(tcp_settings(TcpSettings::default(), &address.bounds))
        .connection_timeout(address.bounds.connect())
        // The link's bound ends the call first, and a call that was given up is not sent again.
        .response_timeout(address.bounds.call() + Duration::from_secs(1))
        .overall_response_timeout(None)
        // None at all would mean that redirections are not followed. The scripts may be repeated.
        .retries(3)
        .min_retry_wait(10)
        .max_retry_wait(50);
    if let Some(tls) = tls {
        builder = tls.cluster(builder)?;
    }
    builder.build()
}

/// A request goes out at once, and the kernel notices a peer that is gone: 10 s without an acknowledgement end a
/// connection, which the link's own bound on silence anticipates for connections in use.
fn tcp_settings(settings: TcpSettings, bounds: &Bounds) -> TcpSettings {
    let patience = bounds.call().max(Duration::from_secs(10));
    let mut settings = settings.set_nodelay(true);
    if settings.keepalive().is_none() {
        settings = settings.set_keepalive(TcpKeepalive::new().with_time(patience / 2).with_interval(patience / 4));
    }
    #[cfg(target_os = "linux")]
    if settings.user_timeout().is_none() {
        settings = settings.set_user_timeout(patience);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_send_at_once_and_notice_a_peer_that_is_gone() {
        let settings = tcp_settings(TcpSettings::default(), &Bounds::default());
        assert!(settings.nodelay() && settings.keepalive().is_some());
        #[cfg(target_os = "linux")]
        assert_eq!(settings.user_timeout(), Some(Duration::from_secs(10)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_service_has_set_itself_stays() {
        let own = TcpSettings::default().set_user_timeout(Duration::from_secs(4));
        assert_eq!(tcp_settings(own, &Bounds::default()).user_timeout(), Some(Duration::from_secs(4)));
    }

    #[test]
    fn cluster_nodes_are_asked_in_turn() {
        let client = |port: u16| Client::open(format!("redis://h:{port}")).unwrap();
        let nodes = Nodes::new(vec![client(1), client(2)]);
        let port = || nodes.next().unwrap().get_connection_info().addr().to_string();
        assert_eq!([port(), port(), port()], ["h:1", "h:2", "h:1"]);
        assert!(Nodes::new(Vec::new()).next().is_none());
    }
}
