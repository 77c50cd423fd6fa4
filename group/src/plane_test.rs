//! What waits for a plane that takes nothing.
use super::*;
use quorumwire_interfaces::{Answer, CounterSink, Limits, PlaneKeys};

/// Its ring is full.
#[derive(Debug)]
struct Full;

impl DataPlane for Full {
    fn limits(&self) -> Limits {
        Limits {
            payload_bytes_max: 1024,
            replicas_max: 7,
            ring_slots: 64,
            authenticates: true,
        }
    }
    fn set_keys(&mut self, _: &PlaneKeys) {}
    fn engage(&mut self, _: &Grant) -> Result<(), PlaneError> {
        Ok(())
    }
    fn disengage(&mut self) -> Registers {
        self.registers()
    }
    fn set_peer(&mut self, _: u8, _: &Endpoint) {}
    fn registers(&self) -> Registers {
        Registers::default()
    }
    fn submit(&mut self, _: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        Err(PlaneError::Full)
    }
    fn heartbeat(&mut self, _: u64) -> Result<(), PlaneError> {
        Ok(())
    }
    fn poll(&mut self, _: usize, _: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        0
    }
    fn persisted(&mut self, _: Index) -> Result<(), PlaneError> {
        Ok(())
    }
    fn release(&mut self, _: Index) -> Result<(), PlaneError> {
        Ok(())
    }
    fn answer(&mut self, _: &Answer<'_>) {}
    fn send_foreign(&mut self, _: SocketAddr, _: &[u8]) {}
    fn counters(&self, _: CounterSink<'_>) {}
}

/// Else a lifetime counts from the tick before, which may be seconds old.
#[test]
fn a_tick_is_not_given_up_with_the_late_writes_in_front_of_it() {
    let options = PlaneOptions {
        group: GroupId(0),
        endpoint: None,
        held: false,
        first_sequence: 1,
        waiting_bytes_max: 1 << 20,
        work_of: |_| 1,
    };
    let at = |seconds: u64| Now(Duration::from_secs(seconds));
    let mut plane: Plane<u64, Full> = Plane::new(Box::new(Full), options);
    plane.enqueue(Bytes::from_static(b"a"), 1, at(1));
    plane.enqueue_tick(at(1));
    plane.enqueue(Bytes::from_static(b"b"), 2, at(1));
    plane.enqueue(Bytes::from_static(b"c"), 3, at(7));
    let late = plane.take_late(|it| it < at(5));
    assert!(late.iter().map(|it| it.origin).eq([Some(1), Some(2)]));
    let waiting = |plane: &Plane<u64, Full>| -> Vec<(EntryKind, Now)> {
        plane.waiting().map(|it| (it.kind, it.at)).collect()
    };
    // As old as what waits behind it, whose own time is not to be hidden.
    let left = [(EntryKind::Tick, at(7)), (EntryKind::Command, at(7))];
    assert_eq!(waiting(&plane), left);
    // It still counts as the one that waits.
    plane.enqueue_tick(at(8));
    assert_eq!(waiting(&plane), left);
    assert_eq!(plane.take_late(|it| it < at(9)).len(), 1);
    assert!(plane.is_idle(), "nothing counts from it any more");
}
