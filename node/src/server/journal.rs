//! Where the replica's promises are kept: the write-ahead log in `sync` mode, nothing in `memory`
//! mode. Translates between what consensus asks for and what storage offers.
use anyhow::bail;
use quorumwire_control::{Entry, HardState, Ticket};
use quorumwire_interfaces::{Index, Term};
use quorumwire_storage::{LogCounters, LogHealth, LogJob, LogRefused, LogWriter, compactable};
use std::collections::VecDeque;

/// The log, or its absence.
pub struct Journal {
    writer: Option<LogWriter>,
    /// Handed back because the log's queue was full; goes first.
    held: VecDeque<LogJob>,
    last_ticket: u64,
    persisted: u64,
    /// As it was when it was last looked at.
    health: LogHealth,
}

impl Journal {
    /// A journal over a log (`sync`) or over nothing (`memory`).
    pub fn new(writer: Option<LogWriter>) -> Self {
        Self {
            writer,
            held: VecDeque::new(),
            last_ticket: 0,
            persisted: 0,
            health: LogHealth::Working,
        }
    }

    /// Whether nothing can be written for now, because the disk is full or no file can be opened: new writes
    /// are to be refused.
    pub fn is_full(&self) -> bool {
        match self.health {
            LogHealth::DiskFull | LogHealth::NoDescriptor => true,
            LogHealth::Working | LogHealth::Failed(_) => false,
        }
    }

    /// Whether something is being written that is not on disk yet.
    pub fn is_behind(&self) -> bool {
        self.persisted < self.last_ticket
    }

    /// What is wrong, for people.
    pub fn fault(&self) -> Option<String> {
        let text = match self.health {
            LogHealth::Working | LogHealth::Failed(_) => return None,
            LogHealth::DiskFull => "disk full: writes are refused until space returns",
            LogHealth::NoDescriptor => {
                "no file descriptor is left for the log: writes are refused until one is free"
            }
        };
        Some(text.to_owned())
    }

    /// Writes hard state and entries. `Some`: durable already (as far as the mode goes). An error
    /// means the log has failed and the process must stop.
    pub fn persist(
        &mut self,
        ticket: Ticket,
        hard_state: Option<HardState>,
        entries: &[Entry],
    ) -> anyhow::Result<Option<Ticket>> {
        if self.writer.is_none() {
            return Ok(Some(ticket));
        }
        self.submit(LogJob {
            ticket: ticket.0,
            hard_state: hard_state.as_ref().map(HardState::to_proto),
            begin_behind: None,
            pieces: Entry::pieces(entries),
        })?;
        Ok(None)
    }

    /// A snapshot has been installed: the log begins behind it.
    pub fn begin_behind(&mut self, last_index: Index, last_term: Term) -> anyhow::Result<()> {
        self.submit(LogJob {
            ticket: self.last_ticket, // says nothing new about what is durable
            hard_state: None,
            begin_behind: Some((last_index, last_term)),
            pieces: Vec::new(),
        })
    }

    fn submit(&mut self, job: LogJob) -> anyhow::Result<()> {
        self.last_ticket = job.ticket;
        if self.writer.is_some() {
            self.held.push_back(job);
            self.retry()?;
        }
        Ok(())
    }

    /// Hands over what could not be handed over before.
    pub fn retry(&mut self) -> anyhow::Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        while let Some(job) = self.held.pop_front() {
            match writer.submit(job) {
                Ok(()) => {}
                Err(LogRefused::Full(job)) => {
                    self.held.push_front(job);
                    return Ok(());
                }
                Err(LogRefused::Failed) => bail!("the log takes nothing any more"),
            }
        }
        Ok(())
    }

    /// What has become durable since the last call.
    pub fn take_persisted(&mut self) -> anyhow::Result<Option<Ticket>> {
        let Some(writer) = &self.writer else {
            return Ok(None);
        };
        let health = writer.health();
        if let LogHealth::Failed(problem) = &health {
            bail!(
                "the log failed: {problem}. What it holds may not be on disk, so this replica stops \
                 and does not try again; start it anew once the disk is well"
            );
        }
        let before = std::mem::replace(&mut self.health, health);
        if let Some(news) = news_of(&before, &self.health) {
            tell(news);
        }
        let persisted = writer.persisted();
        self.retry()?;
        if persisted == self.persisted {
            return Ok(None);
        }
        self.persisted = persisted;
        Ok(Some(Ticket(persisted)))
    }

    /// Everything up to here is in a durable snapshot.
    pub fn compact(&self, upto: Index) {
        if let Some(writer) = &self.writer {
            writer.compact(compactable(upto, &self.held));
        }
    }

    /// Files on disk.
    pub fn segments(&self) -> u64 {
        self.writer
            .as_ref()
            .map_or(0, |writer| writer.counters().segments)
    }

    /// None in `memory` mode: nothing is written.
    pub fn counters(&self) -> Option<LogCounters> {
        self.writer.as_ref().map(LogWriter::counters)
    }
}

/// What is said of the log's health, once each time that it changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum HealthNews {
    DescriptorAgain,
    RoomAgain,
    DiskFull,
    NoDescriptor,
}

fn news_of(before: &LogHealth, now: &LogHealth) -> Option<HealthNews> {
    if before == now {
        return None;
    }
    Some(match now {
        LogHealth::Working if *before == LogHealth::NoDescriptor => HealthNews::DescriptorAgain,
        LogHealth::Working => HealthNews::RoomAgain,
        LogHealth::DiskFull => HealthNews::DiskFull,
        LogHealth::NoDescriptor => HealthNews::NoDescriptor,
        LogHealth::Failed(_) => return None, // said where it ends the process
    })
}

fn tell(news: HealthNews) {
    match news {
        HealthNews::DescriptorAgain => tracing::info!("the log can open files again"),
        HealthNews::RoomAgain => tracing::info!("there is room on the disk again"),
        HealthNews::DiskFull => {
            tracing::error!("disk full: writes are refused until space returns");
        }
        HealthNews::NoDescriptor => tracing::error!(
            "no file descriptor is left for the log: writes are refused until one is free"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use quorumwire_interfaces::{GroupId, Incarnation, ReplicaId};
    use quorumwire_storage::{MemoryDisk, OpenFolder, Settings, open};
    use quorumwire_wire::{Membership, RecordKind, SnapshotHead, begin_record, finish_record};
    use std::sync::{Arc, mpsc};

    /// Otherwise a full disk would be told of in every turn.
    #[test]
    fn the_logs_health_is_told_when_it_changes() {
        let [full, none] = [LogHealth::DiskFull, LogHealth::NoDescriptor];
        let steps = [
            (&LogHealth::Working, &LogHealth::Working, None),
            (&LogHealth::Working, &full, Some(HealthNews::DiskFull)),
            (&full, &full, None),
            (&full, &LogHealth::Working, Some(HealthNews::RoomAgain)),
            (&full, &none, Some(HealthNews::NoDescriptor)),
            (&none, &none, None),
            (
                &none,
                &LogHealth::Working,
                Some(HealthNews::DescriptorAgain),
            ),
        ];
        for (before, now, news) in steps {
            assert_eq!(news_of(before, now), news, "{before:?}, then {now:?}");
        }
    }

    /// The job that begins the log behind an installed snapshot may be the first of a process. What it
    /// makes durable must not be taken for the first thing that consensus wants to be durable.
    #[test]
    fn beginning_behind_a_snapshot_says_nothing_about_later_entries() {
        let settings = Settings {
            cluster: "test".to_owned(),
            replica: ReplicaId(1),
            group: GroupId(0),
            new_incarnation: Incarnation(7),
            segment_bytes: 1 << 20,
            promise: std::time::Duration::from_millis(20),
            lineage: quorumwire_interfaces::Lineage::default(),
        };
        let OpenFolder::Ready(ready) = open(Arc::new(MemoryDisk::new()), settings).unwrap() else {
            panic!("a new folder is not damaged");
        };
        let head = SnapshotHead {
            last_index: Index(10),
            last_term: Term(2),
            membership: Membership::default(),
            ..SnapshotHead::default()
        };
        ready.snapshots.create(&head, |_| Ok(())).unwrap();
        let (woken, wakes) = mpsc::channel();
        let wake = move || woken.send(()).unwrap();
        let writer = LogWriter::start(ready.log, Box::new(wake)).unwrap();
        let mut journal = Journal::new(Some(writer));

        journal.begin_behind(Index(10), Term(2)).unwrap();
        wakes.recv().unwrap();
        assert_eq!(journal.take_persisted().unwrap(), None);

        let mut block = BytesMut::new();
        let start = begin_record(&mut block, RecordKind::NoOp, GroupId(0), Term(2), Index(11));
        finish_record(&mut block, start);
        let entry = Entry {
            index: Index(11),
            term: Term(2),
            kind: RecordKind::NoOp,
            start: 0,
            end: u32::try_from(block.len()).unwrap(),
            block: block.freeze(),
        };
        assert_eq!(journal.persist(Ticket(1), None, &[entry]).unwrap(), None);
        wakes.recv().unwrap();
        assert_eq!(journal.take_persisted().unwrap(), Some(Ticket(1)));
    }
}
