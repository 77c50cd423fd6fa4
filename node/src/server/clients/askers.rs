//! Connections that the system says have something to read, until they are looked at.

/// They wait for one turn at most, while others are answered.
#[derive(Default)]
pub struct Askers {
    slots: Vec<u32>,
    have_waited: bool,
}

impl Askers {
    /// This one has something to read.
    pub fn add(&mut self, slot: u32) {
        self.slots.push(slot);
    }

    /// Whether the next turn has to look at some.
    pub fn are_waiting(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whoever is to be looked at in this turn: nobody if it has answered others, everybody who has waited
    /// for a turn already. Clients that were answered ask again at once, and what they ask shares the next
    /// Append to each follower with what waits here. With many clients that wait for every answer, Appends
    /// carry more, and followers have fewer of them to take.
    pub fn take(&mut self, has_answered: bool) -> impl Iterator<Item = u32> + use<'_> {
        self.have_waited = has_answered && !self.have_waited && self.are_waiting();
        let waiting = self.have_waited;
        let taken = if waiting { 0 } else { self.slots.len() };
        self.slots.drain(..taken)
    }
}

#[cfg(test)]
mod tests {
    use super::Askers;

    /// Those taken, as text.
    fn taken(askers: &mut Askers, has_answered: bool) -> String {
        let slots: Vec<String> = askers.take(has_answered).map(|it| it.to_string()).collect();
        slots.join(" ")
    }

    #[test]
    fn who_asks_waits_for_answers_of_one_turn_and_no_longer() {
        let mut askers = Askers::default();
        askers.add(1);
        assert_eq!(taken(&mut askers, false), "1", "nobody was answered");
        askers.add(2);
        assert_eq!(taken(&mut askers, true), "");
        assert!(askers.are_waiting());
        askers.add(3);
        assert_eq!(taken(&mut askers, true), "2 3", "it has waited before");
        assert!(!askers.are_waiting());
        assert_eq!(taken(&mut askers, true), "", "nobody waits");
        askers.add(4);
        assert_eq!(taken(&mut askers, true), "", "and that was no waiting");
        assert_eq!(taken(&mut askers, false), "4");
    }
}
