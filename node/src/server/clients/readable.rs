//! Connections that the system says have something to read, until they are looked at.

/// They wait for one turn at most, while others are answered.
#[derive(Default)]
pub struct Readable {
    places: Vec<u32>,
    have_waited: bool,
}

impl Readable {
    /// This one has something to read.
    pub fn add(&mut self, place: u32) {
        self.places.push(place);
    }

    /// Whether the next turn has to look at some.
    pub fn are_waiting(&self) -> bool {
        !self.places.is_empty()
    }

    /// Whoever is to be looked at in this turn: nobody if it has answered others, everybody who has waited
    /// for a turn already. Clients that were answered ask again at once, and what they ask shares the next
    /// Append to each follower with what waits here. With many clients that wait for every answer, Appends
    /// carry more, and followers have fewer of them to take.
    pub fn take(&mut self, has_answered: bool) -> impl Iterator<Item = u32> + use<'_> {
        self.have_waited = has_answered && !self.have_waited && self.are_waiting();
        let waiting = self.have_waited;
        let taken = if waiting { 0 } else { self.places.len() };
        self.places.drain(..taken)
    }
}

#[cfg(test)]
mod tests {
    use super::Readable;

    /// Those taken, as text.
    fn taken(readable: &mut Readable, has_answered: bool) -> String {
        let places: Vec<String> = readable
            .take(has_answered)
            .map(|it| it.to_string())
            .collect();
        places.join(" ")
    }

    #[test]
    fn who_asks_waits_for_answers_of_one_turn_and_no_longer() {
        let mut readable = Readable::default();
        readable.add(1);
        assert_eq!(taken(&mut readable, false), "1", "nobody was answered");
        readable.add(2);
        assert_eq!(taken(&mut readable, true), "");
        assert!(readable.are_waiting());
        readable.add(3);
        assert_eq!(taken(&mut readable, true), "2 3", "it has waited before");
        assert!(!readable.are_waiting());
        assert_eq!(taken(&mut readable, true), "", "nobody waits");
        readable.add(4);
        assert_eq!(taken(&mut readable, true), "", "and that was no waiting");
        assert_eq!(taken(&mut readable, false), "4");
    }
}
