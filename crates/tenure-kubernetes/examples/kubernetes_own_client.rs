//! A controller that has a client already leads with it, and fences the object that it writes.
//!
//! ```text
//! cargo run -p tenure-kubernetes --features tls-rustls --example kubernetes_own_client -- default
//! ```

use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Config};
use tenure_core::{CancellationToken, Election, FencingToken, Leadership};
use tenure_kubernetes::{FenceAnnotation, KubernetesStore, k8s_openapi, kube};

const OBJECT: &str = "tenure-example";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let namespace = std::env::args().nth(1).unwrap_or_else(|| "default".to_owned());
    let mut config = Config::infer().await?;
    // The driver repeats what may be repeated; the client would repeat writes too.
    config.default_retry = false;
    let client = Client::try_from(config)?;

    let store = KubernetesStore::new(client.clone(), namespace.clone());
    let election = Election::builder("tenure-example-own", store).build()?;
    let objects = Api::namespaced(client, &namespace);
    let work = |lead: Leadership| count_up(lead.token(), objects.clone());
    println!("{:?}", election.run_as_leader(CancellationToken::new(), work).await?);
    Ok(())
}

/// Writes a total that no earlier leader can overwrite any more.
async fn count_up(token: FencingToken, objects: Api<ConfigMap>) -> Result<bool, kube::Error> {
    let found = objects.get_opt(OBJECT).await?;
    let is_new = found.is_none();
    let metadata = ObjectMeta { name: Some(OBJECT.to_owned()), ..ObjectMeta::default() };
    let mut object = found.unwrap_or_else(|| ConfigMap { metadata, ..ConfigMap::default() });
    if !FenceAnnotation::default().admit(&mut object.metadata, token) {
        // A later leader has written already.
        return Ok(false);
    }
    let data = object.data.get_or_insert_default();
    let total = data.get("total").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    data.insert("total".to_owned(), (total + 1).to_string());
    // Refused when anybody wrote since the read: the version goes with it.
    match is_new {
        true => objects.create(&PostParams::default(), &object).await?,
        false => objects.replace(OBJECT, &PostParams::default(), &object).await?,
    };
    Ok(true)
}
