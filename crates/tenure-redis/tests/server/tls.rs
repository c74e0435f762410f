//! Over TLS.

use tenure_core::StoreErrorKind;
use tenure_redis::RedisStore;

use crate::bench::{bid, connect, environment, fresh_name, granted};

fn url(query: &str) -> String {
    format!("{}?{query}", environment("TENURE_TEST_REDIS_TLS"))
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_server_with_the_right_certificate_serves() {
    let ca = environment("TENURE_TEST_CA");
    let (cert, key) = (environment("TENURE_TEST_CLIENT_CERT"), environment("TENURE_TEST_CLIENT_KEY"));
    for url in [url(&format!("ca={ca}")), url(&format!("ca={ca}&cert={cert}&key={key}"))] {
        granted(&connect(&url).await, &bid(&fresh_name("tls"))).await;
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_server_that_cannot_be_verified_is_denied_without_a_fallback() {
    for url in [url(""), url(&format!("ca={}", environment("TENURE_TEST_OTHER_CA")))] {
        let error = RedisStore::connect(&url.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}: {:?}", std::error::Error::source(&error));
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_certificate_that_is_not_there_is_named() {
    let error = RedisStore::connect(&url("ca=/nowhere/ca.pem").parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
}
