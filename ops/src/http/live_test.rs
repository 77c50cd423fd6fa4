//! Who may listen, and who is dropped; without a socket.
use super::super::handle::Handle;
use super::{DOCUMENTS_WAITING_MAX, Gathers, LISTENERS_MAX, Live};
use bytes::Bytes;
use quorumwire_node::admin::{ADMIN_QUEUE_MAX, AdminHandle};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// One whose gathering never begins: nothing here waits.
fn live() -> Arc<Live> {
    let (queue, _) = sync_channel(ADMIN_QUEUE_MAX);
    let poll = mio::Poll::new().unwrap();
    let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
    Live::new(Handle::new(AdminHandle::new(queue, waker)), None)
}

fn in_runtime(body: impl FnOnce(&Arc<Live>)) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(async { body(&live()) });
}

#[test]
fn who_does_not_take_what_is_said_is_dropped() {
    in_runtime(|live| {
        let document = Bytes::from_static(b"document");
        let mut slow = live.join().unwrap();
        let mut quick = live.join().unwrap();
        for _ in 0..DOCUMENTS_WAITING_MAX {
            assert!(live.tell(&document));
            assert!(quick.try_recv().is_ok());
        }
        assert!(live.tell(&document), "one is left");
        assert!(quick.try_recv().is_ok());
        assert_eq!(live.listeners().each.len(), 1);
        // It is told what waited, and that this was all.
        for _ in 0..DOCUMENTS_WAITING_MAX {
            assert!(slow.try_recv().is_ok());
        }
        assert!(slow.is_closed() && slow.try_recv().is_err());
        drop(quick);
        assert!(!live.tell(&document), "nobody is left");
        assert!(live.listeners().latest.is_none());
    });
}

#[test]
fn as_many_listen_as_may_and_a_place_comes_back() {
    in_runtime(|live| {
        let mut all: Vec<_> = (0..LISTENERS_MAX).map(|_| live.join().unwrap()).collect();
        assert!(live.join().is_none());
        drop(all.pop());
        all.push(live.join().unwrap());
        assert!(live.join().is_none());
    });
}

#[test]
fn who_comes_later_hears_the_latest_at_once() {
    in_runtime(|live| {
        let first = live.join().unwrap();
        assert!(live.tell(&Bytes::from_static(b"old")));
        assert!(live.tell(&Bytes::from_static(b"new")));
        let mut second = live.join().unwrap();
        assert_eq!(second.try_recv().unwrap(), "new");
        assert!(second.try_recv().is_err());
        drop(first);
    });
}

#[test]
fn stopping_ends_all_and_lets_nobody_in() {
    in_runtime(|live| {
        let mut listener = live.join().unwrap();
        live.stop();
        assert!(listener.is_closed() && listener.try_recv().is_err());
        assert!(live.join().is_none());
    });
}

/// One task asks for all listeners; it is not started twice, and started anew after its end.
#[test]
fn one_task_asks_for_all() {
    in_runtime(|live| {
        // Each task that gathers holds on to it.
        let tasks = |live: &Arc<Live>| Arc::strong_count(live) - 1;
        assert_eq!(tasks(live), 0);
        let listeners = [live.join().unwrap(), live.join().unwrap()];
        assert_eq!(tasks(live), 1);
        drop(listeners);
        assert!(!live.tell(&Bytes::new())); // which is when a task ends
        let _another = live.join().unwrap();
        assert_eq!(tasks(live), 2, "the first one was never run here");
    });
}

#[test]
fn who_gathers_and_panics_is_followed_by_another() {
    in_runtime(|live| {
        let mut listener = live.join().unwrap();
        assert!(live.tell(&Bytes::from_static(b"old")));
        let gathers = Gathers::begin(live);
        let panics = std::panic::AssertUnwindSafe(move || {
            let _gathers = gathers;
            panic!("as a bug would");
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        // It is told what waited, and that it should come again.
        assert_eq!(listener.try_recv().unwrap(), "old");
        assert!(listener.is_closed() && listener.try_recv().is_err());
        let tasks = Arc::strong_count(live);
        let mut again = live.join().unwrap();
        assert_eq!(Arc::strong_count(live), tasks + 1);
        assert!(again.try_recv().is_err(), "old figures are gone");
    });
}
