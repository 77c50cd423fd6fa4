use super::*;
use std::sync::atomic::AtomicU8;

const DEADLINE: Duration = Duration::from_mins(1);

/// The usual ports, at an address that no other test has.
fn own_addresses(count: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let test = NEXT.fetch_add(1, Ordering::Relaxed);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let ip = [127, 32 + test, high, low.clamp(1, 254)];
    (8800..).take(count).map(|port| (ip, port).into()).collect()
}

struct World {
    acceptors: Vec<SocketAddr>,
    folder: Option<tempfile::TempDir>,
    hosts: Vec<Option<Host>>,
}

impl World {
    fn begin(count: usize, keeps: bool) -> Self {
        log::begin(Box::new(|importance, text| {
            println!("{importance:?} {text}");
        }));
        let mut world = Self {
            acceptors: own_addresses(count),
            folder: keeps.then(|| tempfile::tempdir().expect("a folder")),
            hosts: (0..count).map(|_| None).collect(),
        };
        (0..count).for_each(|me| world.start(me));
        world
    }

    fn start(&mut self, me: usize) {
        let dir = self
            .folder
            .as_ref()
            .map(|it| it.path().join(me.to_string()));
        let options = HostOptions {
            acceptors: self.acceptors.clone(),
            me: u8::try_from(me).expect("few"),
            dir,
            is_to_begin_anew: false,
            nodelay: true,
        };
        self.hosts[me] = Some(Host::begin(options, Box::new(|| ())).expect("begins"));
    }

    fn host(&self, me: usize) -> &Host {
        self.hosts[me].as_ref().expect("it runs")
    }

    fn submit(&self, me: usize, values: std::ops::Range<u32>) {
        for value in values {
            assert!(self.host(me).submit(value.to_be_bytes().to_vec()));
        }
    }

    fn wait_until_it_votes(&self, me: usize) {
        let end = Instant::now() + DEADLINE;
        while !self.host(me).votes() {
            assert!(Instant::now() < end, "it is not let in");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until all that run have as many, and returns those of the first.
    fn wait_for(&self, count: u64) -> Vec<Vec<u8>> {
        let end = Instant::now() + DEADLINE;
        for host in self.hosts.iter().flatten() {
            while host.history().last() < count {
                assert!(Instant::now() < end, "{} of {count}", host.history().last());
                thread::sleep(Duration::from_millis(5));
            }
        }
        let values = |host: &Host| -> Vec<Vec<u8>> {
            let value = |number| match host.history().get(number) {
                Found::Value(entry) => entry.value.to_vec(),
                other @ (Found::NotYet | Found::Gone(_)) => panic!("{number}: {other:?}"),
            };
            (1..=count).map(value).collect()
        };
        let mut all = self.hosts.iter().flatten().map(values);
        let first = all.next().expect("one runs");
        assert!(all.all(|it| it == first), "they differ");
        first
    }
}

fn restarted(keeps: bool) {
    let mut world = World::begin(3, keeps);
    world.submit(0, 0..300);
    let mut count = 300;
    world.wait_for(count);
    for me in [0, 1, 2] {
        world.hosts[me] = None;
        let other = (me + 1) % 3;
        // More than the window holds, so that what it lacks is forgotten.
        world.submit(other, 0..5000);
        count += 5000;
        world.wait_for(count);
        world.start(me);
        world.submit(me, 0..10);
        count += 10;
        world.wait_for(count);
        // Until then it counts for nothing, and the next one that goes would be one too many.
        world.wait_until_it_votes(me);
    }
}

#[test]
fn all_have_the_same_values_whoever_is_restarted_and_has_lost_its_memory() {
    restarted(false);
}

#[test]
fn all_have_the_same_values_whoever_is_restarted_with_its_folder() {
    restarted(true);
}

#[test]
fn what_keeps_nothing_begins_anew_when_all_were_stopped_and_what_keeps_goes_on() {
    for keeps in [false, true] {
        let mut world = World::begin(3, keeps);
        world.submit(1, 0..20);
        world.wait_for(20);
        world.hosts.iter_mut().for_each(|it| *it = None);
        (0..3).for_each(|me| world.start(me));
        world.submit(2, 20..21);
        let values = world.wait_for(if keeps { 21 } else { 1 });
        assert_eq!(values.last().unwrap(), &20_u32.to_be_bytes());
    }
}

#[test]
fn who_has_lost_its_folder_is_let_in_and_given_all() {
    let mut world = World::begin(3, true);
    world.submit(0, 0..50);
    world.wait_for(50);
    world.hosts[2] = None;
    let folder = world.folder.as_ref().expect("one").path().join("2");
    fs::remove_dir_all(folder).unwrap();
    world.start(2);
    world.wait_for(50);
    world.wait_until_it_votes(2);
    // Its votes count: without those of another one.
    world.hosts[1] = None;
    world.submit(2, 50..60);
    world.wait_for(60);
}

#[test]
fn one_alone_decides_and_what_is_trimmed_is_gone_everywhere() {
    let world = World::begin(1, true);
    world.submit(0, 0..100);
    world.wait_for(100);
    world.host(0).trim(40);
    let end = Instant::now() + DEADLINE;
    while world.host(0).history().get(40) != Found::Gone(40) {
        assert!(Instant::now() < end);
        thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(world.host(0).history().get(41), Found::Value(_)));
}

#[test]
fn what_makes_no_sense_ends_a_connection_and_nothing_else() {
    use std::io::{Read as _, Write as _};
    let world = World::begin(1, false);
    let to = world.acceptors[0];
    let other = founding::tag_of(&[]);
    let mut frames: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        frames::head(Kind::Submit, VALUE_BYTES_MAX + 1).to_vec(),
        frames::head(Kind::Submit, usize::MAX).to_vec(),
        frames::head(Kind::End, 0).to_vec(),
    ];
    for kind in [Kind::Who, Kind::Join, Kind::Subscribe, Kind::Trim] {
        let mut frame = Vec::new();
        super::frames::write(&mut frame, kind, &[b"short"]).unwrap();
        frames.push(frame);
        let mut frame = Vec::new();
        super::frames::write(&mut frame, kind, &[&other, &[0; 16]]).unwrap();
        frames.push(frame);
    }
    for frame in frames {
        let mut stream = peers::connect(to, true).unwrap();
        stream.write_all(&frame).unwrap();
        let mut answer = Vec::new();
        // It may be reset, or closed.
        stream.read_to_end(&mut answer).ok();
        assert_eq!(answer, b"", "{frame:?}");
    }
    world.submit(0, 0..1);
    world.wait_for(1);
}
