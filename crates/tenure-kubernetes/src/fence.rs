//! Fencing tokens, checked at the object that a leader writes to.

use kube::api::ObjectMeta;
use tenure_core::FencingToken;

/// Keeps the writes of earlier terms from an object, by an annotation that holds the largest token so far.
///
/// No lease can stop a leader that was paused before a write. The object itself can: read it, [`admit`](Self::admit) the
/// token, change it, and `replace` it with the version that was read. A later leader's write in between makes that a
/// conflict (409), and from then on the annotation refuses the earlier token.
///
/// ```
/// use tenure_core::FencingToken;
/// use tenure_kubernetes::FenceAnnotation;
/// use tenure_kubernetes::kube::api::ObjectMeta;
///
/// let fence = FenceAnnotation::default();
/// let mut metadata = ObjectMeta::default(); // of the object, as it was just read
/// assert!(fence.admit(&mut metadata, FencingToken(7)));
/// assert!(!fence.admit(&mut metadata, FencingToken(6)), "a later leader has written already");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceAnnotation(String);

impl FenceAnnotation {
    /// A fence by the annotation `key`; [`default`](Self::default) is `tenure.rs/fence`.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Notes `token` in the object's metadata; `false`, and nothing noted, where a larger one or something else is.
    #[must_use]
    pub fn admit(&self, metadata: &mut ObjectMeta, token: FencingToken) -> bool {
        let annotations = metadata.annotations.get_or_insert_default();
        let admitted = match annotations.get(&self.0).map(|text| text.parse::<u64>()) {
            None => true,
            Some(Ok(noted)) => noted <= token.value(),
            Some(Err(_)) => false,
        };
        if admitted {
            annotations.insert(self.0.clone(), token.value().to_string());
        }
        admitted
    }
}

impl Default for FenceAnnotation {
    fn default() -> Self {
        Self::new("tenure.rs/fence")
    }
}
