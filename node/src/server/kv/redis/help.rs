//! What containers of commands about the server say of themselves: only what is served here.
use quorumwire_kv::redis::reply;

/// Answers `HELP` of this container.
pub fn write(container: &str, out: &mut Vec<u8>) {
    let lines: &[&str] = match container {
        "client" => &CLIENT,
        "config" => &CONFIG,
        "latency" => &LATENCY,
        "memory" => &MEMORY,
        _ => &SLOWLOG,
    };
    reply::array_header(out, lines.len() + 3);
    let name = container.to_ascii_uppercase();
    let first = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    reply::simple(out, &first);
    let last = ["HELP", "    Print this help."];
    for line in lines.iter().chain(&last) {
        reply::simple(out, line);
    }
}

const CLIENT: [&str; 37] = [
    "CACHING (YES|NO)",
    "    Refused: there is no tracking.",
    "GETNAME",
    "    Return the name of the current connection.",
    "GETREDIR",
    "    Return -1: there is no tracking.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR <ip:port>, LADDR <ip:port>",
    "      Made from this address, or to it.",
    "    * ID <client-id>, TYPE (NORMAL|MASTER|REPLICA|PUBSUB), USER <username>",
    "      The one with this ID, those of this type or of this user.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <client-id> [...]]",
    "    Return information about client connections.",
    "NO-EVICT (ON|OFF), NO-TOUCH (ON|OFF)",
    "    Taken, and change nothing.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Set what CLIENT LIST shows as the client's library.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "TRACKING OFF",
    "    Return OK: there is no tracking.",
    "TRACKINGINFO",
    "    Return that tracking is off.",
    "UNBLOCK <client-id> [TIMEOUT|ERROR]",
    "    End the WAIT of another connection, as if its time had passed, or with an error.",
    "    0 if it does not wait.",
];

const CONFIG: [&str; 8] = [
    "GET <pattern> [<pattern> ...]",
    "    Return options that match the patterns, and their values.",
    "SET (maxmemory|maxmemory-policy) <value> [...]",
    "    Set the memory limit, for the whole cluster.",
    "RESETSTAT",
    "    Refused: counters are those of the metrics, too.",
    "REWRITE",
    "    Refused: the server writes no file of options.",
];

const LATENCY: [&str; 12] = [
    "DOCTOR",
    "    Tell where latencies are shown.",
    "GRAPH <event>",
    "    Refused: no events are noted.",
    "HISTOGRAM [<command> ...]",
    "    Return nothing: no commands are noted.",
    "HISTORY <event>",
    "    Return nothing: no events are noted.",
    "LATEST",
    "    Return nothing: no events are noted.",
    "RESET [<event> ...]",
    "    Return 0: no events are noted.",
];

const MEMORY: [&str; 2] = [
    "USAGE <key> [SAMPLES <count>]",
    "    Return the bytes that <key> and its value are counted with.",
];

const SLOWLOG: [&str; 6] = [
    "GET [<count>]",
    "    Return nothing: no commands are noted.",
    "LEN",
    "    Return 0: no commands are noted.",
    "RESET",
    "    Return OK: no commands are noted.",
];
