//! How names are looked up; by something that hangs as long as the test wants.
use super::Lookups;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::timeout;

fn in_runtime<T>(body: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(body)
}

/// Each lookup waits for one word, and is counted.
fn hanging(words: Receiver<()>) -> (Lookups, Arc<AtomicUsize>) {
    let begun = Arc::new(AtomicUsize::new(0));
    let (count, words) = (Arc::clone(&begun), Mutex::new(words));
    let lookups = Lookups::by(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let word = words.lock().unwrap().recv();
        word.map_err(io::Error::other)?;
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], 1))])
    });
    (lookups, begun)
}

#[test]
fn a_name_is_looked_up_once_at_a_time() {
    let (say, words) = sync_channel(1);
    let (lookups, begun) = hanging(words);
    in_runtime(async {
        let say = say; // whatever fails here ends what hangs
        let soon = Duration::from_millis(20);
        let first = timeout(soon, lookups.addresses("a.example:1")).await;
        assert!(first.is_err(), "it hangs, and goes on");
        for _ in 0..3 {
            let again = timeout(soon, lookups.addresses("a.example:1")).await;
            let error = again.expect("at once").unwrap_err();
            assert!(error.to_string().contains("looking up its name"), "{error}");
        }
        // Whatever is an address goes no such way.
        let known = lookups.addresses("[::1]:7").await.unwrap();
        assert_eq!(known, ["[::1]:7".parse().unwrap()]);
        say.send(()).unwrap();
        while !lookups.under_way.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        say.send(()).unwrap();
        assert_eq!(lookups.addresses("a.example:1").await.unwrap().len(), 1);
    });
    assert_eq!(begun.load(Ordering::SeqCst), 2);
}
