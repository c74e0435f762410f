#![doc = include_str!("../docs.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod call;
mod config;
mod error;
mod fence;
mod object_name;
mod record;
mod sightings;
mod source;
mod store;
mod term;
mod watch;

pub use fence::FenceAnnotation;
pub use k8s_openapi;
pub use kube;
pub use store::KubernetesStore;
