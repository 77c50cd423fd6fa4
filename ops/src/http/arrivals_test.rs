//! Who gives way, and when; the test moves the clock.
use super::{ARRIVALS_MAX, Arrival, Arrivals, GivesWay, PATIENCE};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;

/// As many as there may be, the first of them half of the patience older than all others.
fn full(arrivals: &Arc<Arrivals>, now: Instant) -> Vec<(Arrival, GivesWay)> {
    let mut all = vec![arrivals.add(now)];
    let later = now + PATIENCE / 2;
    while all.len() < ARRIVALS_MAX {
        assert_eq!(arrivals.full_until(later), None);
        all.push(arrivals.add(later));
    }
    all
}

#[test]
fn the_oldest_gives_way_after_its_time_and_nobody_else() {
    let (arrivals, begun) = (Arc::new(Arrivals::new(ARRIVALS_MAX)), Instant::now());
    let mut all = full(&arrivals, begun);
    let just_before = begun + PATIENCE.checked_sub(Duration::from_millis(1)).unwrap();
    assert_eq!(arrivals.full_until(just_before), Some(begun + PATIENCE));
    assert_eq!(all[0].1.0.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(arrivals.full_until(begun + PATIENCE), None);
    assert_eq!(all[0].1.0.try_recv(), Ok(()));
    // All others are younger, so one more waits for as long again.
    let next = arrivals.add(begun + PATIENCE);
    let until = begun + PATIENCE + PATIENCE / 2;
    assert_eq!(arrivals.full_until(begun + PATIENCE), Some(until));
    // That the oldest is gone leaves no room a second time.
    drop(all.remove(0));
    assert_eq!(arrivals.full_until(begun + PATIENCE), Some(until));
    for (_, gives_way) in all.iter_mut().chain([next].iter_mut()) {
        assert_eq!(gives_way.0.try_recv(), Err(TryRecvError::Empty));
    }
}

#[test]
fn whose_head_has_come_makes_room_and_never_gives_way() {
    let (arrivals, begun) = (Arc::new(Arrivals::new(ARRIVALS_MAX)), Instant::now());
    let mut all = full(&arrivals, begun);
    all[0].0.end();
    assert_eq!(all[0].1.0.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(arrivals.full_until(begun), None);
    let next = arrivals.add(begun);
    assert_eq!(
        arrivals.full_until(begun),
        Some(begun + PATIENCE + PATIENCE / 2)
    );
    // So does one that closes by itself.
    drop(all.pop());
    assert_eq!(arrivals.full_until(begun), None);
    drop((all, next));
    assert!(arrivals.open().each.is_empty());
}

#[test]
fn who_waits_is_let_in_when_one_ends() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(async {
        let arrivals = Arc::new(Arrivals::new(ARRIVALS_MAX));
        let hour = Duration::from_hours(1);
        let mut all = full(&arrivals, Instant::now() + hour);
        let waiting = Arc::clone(&arrivals);
        let waits = tokio::spawn(async move { waiting.take_in().await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(all.pop());
        waits.await.unwrap();
    });
}
