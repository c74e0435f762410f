//! What lies in `contrib/kubernetes` is taken by a real API server.

#![cfg(feature = "tls-rustls")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::path::Path;

use bench::{FORBIDDEN, admin};
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use tenure_kubernetes::{KubernetesStore, kube};

fn manifest(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/kubernetes");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_real_server_takes_every_manifest() {
    let client = admin().await;
    let mut kinds = Vec::new();
    for file in ["role.yaml", "deployment.yaml", "sidecar.yaml"] {
        for document in manifest(file).split("\n---\n") {
            let object: serde_json::Value = serde_saphyr::from_str(document).unwrap();
            let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api = Api::<DynamicObject>::namespaced_with(client.clone(), FORBIDDEN, &resource);
            let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
            // Everything is checked as for good, and nothing is kept.
            let params = PostParams { dry_run: true, ..PostParams::default() };
            api.create(&params, &object).await.unwrap_or_else(|error| panic!("{file}, {kind}: {error}"));
            kinds.push(kind.to_owned());
        }
    }
    assert_eq!(kinds, ["ServiceAccount", "Role", "RoleBinding", "Deployment", "Deployment"]);
}

#[test]
fn the_role_is_the_documented_one() {
    let rules = |text: &str| text.split_once("rules:").unwrap().1.split("\n---\n").next().unwrap().trim().to_owned();
    assert_eq!(rules(&manifest("role.yaml")), rules(KubernetesStore::ROLE));
    assert!(include_str!("../docs.md").contains("verbs: [get, create, update, watch]"));
}
