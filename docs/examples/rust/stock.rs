//! A shop's stock and its visitors, kept in quorumwire by its own Rust client: what is sold is sold once,
//! whichever replica dies meanwhile.
//!
//! ```text
//! stock HOST:PORT,...
//! ```
//!
//! Name all replicas (their option `listen-client`); the client finds the leader by itself.
use quorumwire_client::kv::Value;
use quorumwire_client::{AsyncClient, Client, Error, Outcome, Settings};
use std::time::Duration;

/// Takes articles out of stock if there are enough. Somebody else may get ahead: then it looks again.
fn sell(client: &Client, article: &str, count: i64) -> Result<bool, Error> {
    let key = format!("stock:{article}");
    let by = count.to_string();
    loop {
        let watched = client.watch(&[&key])?;
        let left = client.get(&key)?.unwrap_or_default();
        let left: i64 = String::from_utf8_lossy(&left).parse().unwrap_or(0);
        if left < count {
            return Ok(false);
        }
        let commands = [["DECRBY", &key, &by], ["INCRBY", "sold", &by]];
        if client.transaction_if(&watched, &commands)?.is_some() {
            return Ok(true);
        }
    }
}

/// Many visitors at once, on one connection.
async fn visitors(settings: Settings, count: usize) -> Result<(), Error> {
    let client = AsyncClient::connect(settings).await?;
    let visits = (0..count).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.increment("visits", 1).await })
    });
    let mut numbers = Vec::new();
    for visit in visits.collect::<Vec<_>>() {
        match visit.await.expect("a task") {
            Ok(number) => numbers.push(number),
            Err(error) => match error.outcome() {
                // Counted, and only the number is lost; or surely not counted; or nobody knows.
                Outcome::CarriedOut => println!("a visitor without a number"),
                Outcome::NotCarriedOut => println!("not counted: {error}"),
                Outcome::Unknown => println!("counted or not: look before counting again"),
            },
        }
    }
    numbers.sort_unstable();
    for number in numbers {
        println!("visitor {number}");
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let addresses = std::env::args().nth(1).expect("HOST:PORT,...");
    let settings = Settings::new(addresses.split(','));
    let client = Client::connect(&settings)?;

    client.set("stock:lamp", "3")?;
    let sold = [sell(&client, "lamp", 2)?, sell(&client, "lamp", 2)?];
    println!("sold two lamps, twice: {sold:?}");
    client.set_for("offer", "lamps", Duration::from_mins(1))?;
    if let Value::Integer(ttl) = client.command(&["TTL", "offer"])? {
        println!("the offer ends in {ttl} s");
    }
    let left = client.get("stock:lamp")?.unwrap_or_default();
    println!("left: {}", String::from_utf8_lossy(&left));

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(visitors(settings, addresses.split(',').count()))?;
    let visits = client.get("visits")?.unwrap_or_default();
    println!("visits: {}", String::from_utf8_lossy(&visits));
    Ok(())
}
