//! The resource that leaders write to: it takes no token after a larger one.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::candidate::now;
use crate::history::{Event, What};

/// Starts a register, and returns its address; what it does is added to `events`.
pub(crate) async fn start(events: Arc<Mutex<Vec<Event>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let largest = Arc::new(Mutex::new(0));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (events, largest) = (events.clone(), largest.clone());
            tokio::spawn(async move {
                let mut bytes = [0; 8];
                while stream.read_exact(&mut bytes).await.is_ok() {
                    let token = u64::from_be_bytes(bytes);
                    let taken = {
                        let mut largest = largest.lock().unwrap();
                        let taken = token >= *largest;
                        *largest = token.max(*largest);
                        let what = if taken { What::Took(token) } else { What::Refused(token) };
                        // Under the lock, so that the order here is that of the writes.
                        events.lock().unwrap().push(Event { at: now(), who: "register".to_owned(), what });
                        taken
                    };
                    if stream.write_all(&[u8::from(taken)]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}
