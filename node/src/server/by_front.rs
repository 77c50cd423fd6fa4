//! What each front does with a client's bytes and with its reads. What is kept of its clients, and how
//! answers are written, is in `fronts`; a front is added here and there.
use super::admission::Admission;
use super::clients::{AnswerKind, Connection};
use super::core::Core;
use super::fronts::Front;
use super::native;
use super::origin::Origin;
use super::read_line::{ReadLine, ReadProgress};
use super::service::Service;
use super::take_outcome::TakeOutcome;
use quorumwire_kv::QueryForm;

/// Takes the first request off `bytes`.
pub fn take_first<S: Service>(
    admission: &mut Admission,
    core: &mut Core<S>,
    connection: &mut Connection,
    bytes: &[u8],
) -> TakeOutcome {
    match connection.front {
        Front::Native(_) => native::take_first(admission, core, connection, bytes),
        Front::Memcached | Front::Redis(_) => S::take_first(admission, core, connection, bytes),
    }
}

/// Writes the answer of the first read that waits, as far as `room` goes. True: all of it.
pub fn answer_first<S: Service>(
    core: &mut Core<S>,
    connection: &mut Connection,
    progress: ReadProgress,
    room: usize,
) -> bool {
    match connection.front {
        Front::Native(_) => native::answer_query(core, connection, progress, room),
        Front::Memcached | Front::Redis(_) => S::answer_first(core, connection, progress, room),
    }
}

/// The answer, out of the store as it is now, of the read with this number, without its first keys.
pub fn answer_now<S: Service>(
    core: &mut Core<S>,
    connection: &Connection,
    (number, keys_done): (u64, u32),
    read: ReadLine<'_>,
) -> Vec<u8> {
    let mut answer = Vec::new();
    match connection.front {
        Front::Native(_) => S::answer_at_once(core, read, &mut answer),
        Front::Memcached | Front::Redis(_) => {
            let origin = Origin::Client(connection.id, number);
            S::answer_now(core, origin, read, keys_done, &mut answer);
        }
    }
    answer
}

/// Writes the answer that came from the leader to the first read that waits.
pub fn put_read_answer<S: Service>(
    connection: &mut Connection,
    line_bytes_form: (u32, QueryForm),
    (said, quiet): (AnswerKind, bool),
    answer: &[u8],
) {
    match connection.front {
        Front::Native(_) => connection.put_answer(said, answer),
        Front::Memcached | Front::Redis(_) => {
            S::put_read_answer(connection, line_bytes_form, (said, quiet), answer);
        }
    }
}

/// Whether a read whose answer fits no message is asked for in parts. A native client does that by itself.
pub fn reads_in_parts<S: Service>(connection: &Connection) -> bool {
    match connection.front {
        Front::Native(_) => false,
        Front::Memcached | Front::Redis(_) => S::reads_in_parts(connection),
    }
}

/// Gives a client what comes to it without being asked for each time.
pub fn give<S: Service>(admission: &Admission, core: &mut Core<S>, connection: &mut Connection) {
    match connection.front {
        Front::Native(_) => native::subscription::give(admission, core, connection),
        Front::Memcached | Front::Redis(_) => {}
    }
}

/// Tells a client what it is to know before its requests are looked at.
pub fn tell<S: Service>(admission: &Admission, core: &Core<S>, connection: &mut Connection) {
    match connection.front {
        Front::Native(_) => native::tell_leader(admission, core, connection),
        Front::Memcached | Front::Redis(_) => {}
    }
}
