//! A turn of one replica whose host answers at once, as far as a test has it answer. Judges nothing.
use quorumwire_control::{Input, Now, Output, Replica};

/// One input and what follows at once: all that was wanted, in order.
pub fn turn(
    replica: &mut Replica,
    now: Now,
    input: Input,
    answer: impl Fn(&Output) -> Option<Input>,
) -> Vec<Output> {
    let mut seen = Vec::new();
    let mut inputs = vec![input];
    while let Some(input) = inputs.pop() {
        let mut outputs = Vec::new();
        replica.step(now, input, &mut outputs);
        replica.flush(now, &mut outputs);
        inputs.extend(outputs.iter().filter_map(&answer));
        seen.extend(outputs);
    }
    seen
}

/// Answers for a disk that is done at once.
pub fn disk(output: &Output) -> Option<Input> {
    if let Output::Persist { ticket, .. } = output {
        return Some(Input::Persisted(*ticket));
    }
    None
}

/// Answers for such a disk, and for a plane that engages whenever it is asked to and never stops by itself.
pub fn disk_and_plane(output: &Output) -> Option<Input> {
    if let Output::Engage(engage) = output {
        return Some(Input::Engaged {
            term: engage.term,
            engaged: true,
        });
    }
    disk(output)
}
