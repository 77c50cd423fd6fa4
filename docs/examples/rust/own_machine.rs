//! A state machine of one's own, replicated: a bank in which money is paid in and moved, and none is lost,
//! whichever replica dies meanwhile.
//!
//! ```text
//! own_machine                                              a replica
//! own_machine HOST:PORT,... move 3 from anna to bob        a command
//! own_machine HOST:PORT,... show anna                      a question
//! ```
//!
//! A replica has the options of `quorumwire server`, from the environment (`QUORUMWIRE_ID=0`) or the file
//! that `QUORUMWIRE_CONFIG` names. A client names all replicas (their option `listen-client`).
use quorumwire_client::{Client, Settings};
use quorumwire_interfaces::{Application, Applied, Frozen};
use quorumwire_node::options::{Flags, ServerOptions};
use quorumwire_node::{logging, server};
use quorumwire_ops::http::Http;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};

/// Who has how much. Equal logs make equal banks: nothing here looks at a clock, a file or chance.
#[derive(Clone, Default)]
struct Bank(BTreeMap<String, u64>);

impl Bank {
    fn run(&mut self, command: &str) -> Option<u64> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (from, amount, to) = match words[..] {
            ["pay", amount, "to", to] => (None, amount.parse().ok()?, to),
            ["move", amount, "from", from, "to", to] => (Some(from), amount.parse().ok()?, to),
            _ => return None,
        };
        // All that may be refused is, before anything changes.
        self.0.get(to).unwrap_or(&0).checked_add(amount)?;
        if let Some(from) = from {
            let balance = self.0.get_mut(from)?;
            *balance = balance.checked_sub(amount)?;
        }
        let balance = self.0.entry(to.to_owned()).or_default();
        *balance += amount;
        Some(*balance)
    }
}

impl Application for Bank {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        let answer = self.run(&String::from_utf8_lossy(entry.command));
        let answer = answer.map_or("refused".to_owned(), |balance| balance.to_string());
        reply.extend_from_slice(answer.as_bytes());
    }

    fn query(&self, who: &[u8], reply: &mut Vec<u8>) {
        let balance = self.0.get(&*String::from_utf8_lossy(who)).unwrap_or(&0);
        reply.extend_from_slice(balance.to_string().as_bytes());
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        Box::new(self.clone())
    }

    fn restore(&mut self, snapshot: &mut dyn io::Read) -> io::Result<()> {
        self.0.clear();
        for line in BufReader::new(snapshot).lines() {
            let line = line?;
            let (who, balance) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
            let balance = balance.parse().map_err(io::Error::other)?;
            self.0.insert(who.to_owned(), balance);
        }
        Ok(())
    }
}

impl Frozen for Bank {
    fn write(&self, snapshot: &mut dyn io::Write) -> io::Result<()> {
        self.0
            .iter()
            .try_for_each(|(who, balance)| writeln!(snapshot, "{who} {balance}"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(addresses) = arguments.next() else {
        let options = ServerOptions::load(&Flags::default())?;
        logging::start(&options);
        return Ok(server::run_application::<Bank>("bank", &options, &Http)?);
    };
    let client = Client::connect(&Settings::new(addresses.split(',')))?;
    let words = arguments.collect::<Vec<_>>().join(" ");
    let answer = match words.strip_prefix("show ") {
        Some(who) => client.query(who.as_bytes())?,
        None => client.submit(words.as_bytes())?,
    };
    println!("{}", String::from_utf8_lossy(&answer));
    Ok(())
}
