//! What each counter of a report counts, for the people who read the metrics page. A counter that is
//! not listed is shown all the same, with a general text.

mod planes;

use quorumwire_node::planes::KINDS;
use std::sync::LazyLock;

/// Of a counter that is not listed.
pub const OTHER: &str = "Counted since the process started";

/// All of them: name, without prefix and `_total`, and help text.
pub fn counters() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_kinds = OF_KINDS.iter().map(|(name, help)| (name.as_str(), *help));
    OTHERS.iter().chain(planes::PLANES).copied().chain(of_kinds)
}

/// Those that only one kind of planes has.
static OF_KINDS: LazyLock<Vec<(String, &'static str)>> = LazyLock::new(|| {
    let all = KINDS.iter().flat_map(|kind| (kind.counters)());
    all.map(|(name, help)| (format!("plane_{name}"), help))
        .collect()
});

/// Those that are no plane's.
const OTHERS: &[(&str, &str)] = &[
    (
        "acknowledgements_denied",
        "Members found to lack what they had acknowledged, as after a disk was put back to an old copy, and repaired",
    ),
    ("append_rejected", "Entries that do not follow on the log"),
    (
        "client_accepts_without_descriptor",
        "Times a client waited at listen-memcached, listen-redis or listen-client and no file descriptor was left for it",
    ),
    (
        "http_accepts_without_descriptor",
        "Times somebody waited at listen-http and no file descriptor was left",
    ),
    (
        "peer_accepts_without_descriptor",
        "Times somebody waited at listen-peer and no file descriptor was left",
    ),
    ("client_bytes_in", "Bytes taken from client connections"),
    ("client_bytes_out", "Bytes given to client connections"),
    ("client_connections_accepted", "Client connections accepted"),
    (
        "client_connections_closed_broken",
        "Client connections closed because they broke",
    ),
    (
        "client_connections_closed_by_client",
        "Client connections closed by their client",
    ),
    (
        "client_connections_closed_for_memory",
        "Client connections closed because all of them held more than client-buffers-mib, and these the most for the longest",
    ),
    (
        "client_connections_closed_unknown",
        "Client connections closed because they did not authenticate in time",
    ),
    (
        "client_connections_closed_truncated",
        "Memcached and Redis clients that broke off within a request",
    ),
    (
        "client_connections_killed",
        "Client connections ended by CLIENT KILL",
    ),
    (
        "client_connections_refused_by_tls",
        "Client connections closed because they did not speak TLS 1.3, or broke it",
    ),
    (
        "client_handshakes_displaced",
        "Client connections closed in their TLS handshake because they were slow and others waited",
    ),
    (
        "client_handshakes_postponed",
        "Times a client's TLS handshake had to wait for its share of the server's time",
    ),
    (
        "client_handshakes_timed_out",
        "Client connections closed because their TLS handshake took too long",
    ),
    (
        "peer_connections_closed_no_time",
        "Peer connections closed at once because the time for handshakes of strangers was used up",
    ),
    (
        "peer_handshakes_postponed",
        "Times a stranger's TLS handshake on the peer port had to wait for its share of the server's time",
    ),
    (
        "client_connections_refused_too_many",
        "Client connections refused at connections-max",
    ),
    (
        "client_requests_refused",
        "Requests of memcached and Redis clients refused because they are malformed, or because the client is not authenticated",
    ),
    (
        "client_requests_refused_malformed",
        "Requests refused because they are not what the protocol has there",
    ),
    (
        "client_requests_refused_too_long",
        "Requests refused because they, or a part of them, are longer than they may be",
    ),
    (
        "client_requests_refused_unknown_command",
        "Requests refused because there is no such command",
    ),
    (
        "client_requests_refused_not_served",
        "Requests refused because the command, or the protocol, is not served here",
    ),
    (
        "client_requests_refused_tls",
        "Requests refused because they are the beginning of TLS, at a port without TLS",
    ),
    (
        "client_requests_refused_unauthenticated",
        "Requests refused because the client is not authenticated",
    ),
    ("command_delete", "Delete and md commands from clients"),
    ("command_flush", "Flush_all commands from clients"),
    ("command_get_hits", "Keys asked for and found"),
    ("command_get_keys", "Keys asked for"),
    (
        "client_authentications_failed",
        "Wrong names or passwords from clients",
    ),
    ("command_redis_reads", "Reads from Redis clients"),
    (
        "command_redis_transactions",
        "Transactions from Redis clients",
    ),
    (
        "command_redis_writes",
        "Writes from Redis clients, but for those in transactions",
    ),
    ("command_number", "Incr, decr and ma commands from clients"),
    (
        "command_set",
        "Storage commands from clients (set, add, replace, append, prepend, cas, ms)",
    ),
    (
        "command_touch",
        "Touch and get-and-touch commands from clients, and mg with a change",
    ),
    ("datagram_answers", "Answers sent over memcached's UDP port"),
    (
        "datagram_answers_not_sent",
        "Datagrams of such answers that the system did not take",
    ),
    (
        "datagram_answers_too_large",
        "Answers replaced by an error because they are too large for UDP",
    ),
    (
        "datagram_bytes_in",
        "Bytes of datagrams taken on memcached's UDP port, frames included",
    ),
    (
        "datagram_bytes_out",
        "Bytes of datagrams sent from memcached's UDP port, frames included",
    ),
    (
        "datagram_dropped_malformed",
        "Datagrams dropped on memcached's UDP port because they are no requests",
    ),
    (
        "datagram_dropped_no_room",
        "Parts of requests over UDP dropped because too much of incomplete requests waited",
    ),
    (
        "datagram_dropped_repeated",
        "Parts of requests over UDP that came again",
    ),
    (
        "datagram_dropped_request_too_long",
        "Parts of requests over UDP dropped because the request has too many, or too many bytes",
    ),
    (
        "datagram_dropped_too_many",
        "Datagrams dropped on memcached's UDP port because too many requests waited",
    ),
    ("datagram_requests", "Requests on memcached's UDP port"),
    (
        "datagram_requests_assembled",
        "Requests over UDP put together of several datagrams",
    ),
    (
        "datagram_requests_contradicted",
        "Incomplete requests over UDP given up because their number came with something else",
    ),
    (
        "datagram_requests_expired",
        "Requests on memcached's UDP port given up without an answer",
    ),
    (
        "datagram_requests_incomplete",
        "Requests over UDP given up because not all of their datagrams came in time",
    ),
    (
        "elections_asked_about",
        "Times this replica heard no leader and asked whether it could be elected",
    ),
    (
        "elections_started",
        "Elections this replica stood for, those that begin fast terms included",
    ),
    ("http_connections_accepted", "HTTP connections accepted"),
    (
        "http_connections_broken",
        "HTTP connections that broke, or on which no HTTP came",
    ),
    (
        "http_connections_gave_way",
        "HTTP connections closed before their request because they were slow and others waited",
    ),
    (
        "http_connections_refused_by_tls",
        "HTTP connections closed because they did not speak TLS 1.3, or broke it",
    ),
    (
        "http_connections_timed_out",
        "HTTP connections closed because a handshake, a request or its answer took too long",
    ),
    ("http_requests", "HTTP requests"),
    (
        "elections_upon_silence",
        "Elections this replica stood for because no leader was heard",
    ),
    ("elections_won", "Elections this replica won"),
    ("entries_applied", "Log entries applied to the store"),
    (
        "process_pauses",
        "Times this process did not run although it wanted to",
    ),
    (
        "process_pauses_milliseconds",
        "How long those times were together",
    ),
    (
        "turns_out_of_time_for_clients",
        "Turns of the event loop that left clients' requests to the next one because their time was over",
    ),
    (
        "turns_out_of_time_for_datagrams",
        "Turns of the event loop that left clients' datagrams to the next one because their time was over",
    ),
    (
        "turns_out_of_time_for_followers",
        "Turns of the event loop that left reads passed on by followers to the next one because their time was over",
    ),
    (
        "turns_out_of_time_for_applying",
        "Turns of the event loop that left committed entries to the next one because their time was over",
    ),
    (
        "turns_out_of_time_for_searches",
        "Turns of the event loop that left a search through all keys to the next one because its time was over",
    ),
    (
        "client_writes_waited_for_work",
        "Expensive writes that waited because those of clients here on their way were as much work as they may be",
    ),
    (
        "client_shares_used_up",
        "Times a client's connection had had its share of a turn and waited behind the others",
    ),
    (
        "busy_polls",
        "Waits for others or the disk that began with looking, without sleep (option `busy-poll-us`)",
    ),
    (
        "busy_polls_in_vain",
        "Those of them that ended with sleep because nothing had come by then",
    ),
    (
        "session_commands_refused",
        "Commands of client sessions that were not executed",
    ),
    (
        "session_commands_repeated",
        "Commands of client sessions that had been executed before",
    ),
    (
        "fast_term_attempts",
        "Times this leader stopped taking requests in order to engage data planes",
    ),
    (
        "fast_term_attempts_failed",
        "Times that led to no fast term",
    ),
    (
        "fast_term_keys_drawn",
        "Keys that this replica drew for fast terms which it led or stood for",
    ),
    (
        "fast_term_keys_dropped_malformed",
        "Keys of fast terms dropped because they have not the length of a key",
    ),
    (
        "fast_term_keys_dropped_not_leader",
        "Keys of fast terms dropped because another replica leads that term",
    ),
    (
        "fast_term_keys_dropped_old_term",
        "Keys of fast terms dropped because their term is over",
    ),
    (
        "fast_term_keys_dropped_stranger",
        "Keys of fast terms dropped because their sender does not vote in this life",
    ),
    (
        "fast_term_keys_dropped_unexpected",
        "Keys of fast terms dropped because no data plane runs here",
    ),
    (
        "fast_term_keys_kept",
        "Keys of fast terms received from leaders and candidates",
    ),
    (
        "fast_term_keys_missing",
        "Times that the data plane was not engaged because its leader's key had not come",
    ),
    (
        "fast_term_keys_sent",
        "Keys of fast terms sent to replicas that were asked to engage",
    ),
    (
        "fast_term_left_commits_stand_still",
        "Data plane stopped: entries waited, enough replicas answered, and none was committed",
    ),
    (
        "fast_term_left_higher_term",
        "Data plane stopped: somebody took part in a higher term",
    ),
    (
        "fast_term_left_leader_silent",
        "Data plane stopped: the leader was not heard and others agreed",
    ),
    (
        "fast_term_left_membership_change",
        "Data plane stopped: the members were to be changed",
    ),
    (
        "fast_term_left_plane_failed",
        "Data plane stopped: it had failed",
    ),
    (
        "fast_term_left_software",
        "Data plane stopped: its leader went on in software, or repaired this replica by software",
    ),
    (
        "fast_term_left_too_few_engaged",
        "Data plane stopped: too few engaged replicas answered",
    ),
    (
        "fast_term_left_transfer",
        "Data plane stopped: leadership was to be handed over",
    ),
    (
        "forwarded_from_followers",
        "Requests that followers handed to this leader",
    ),
    ("forwarded_to_leader", "Requests handed to the leader"),
    (
        "read_indexes_asked",
        "Read indexes that reads wanted, for want of a lease or because `reads` is `read-index`, and backups",
    ),
    ("log_batches", "Groups of writes made durable together"),
    (
        "log_busy_microseconds",
        "Time spent writing and syncing the log",
    ),
    ("log_bytes", "Bytes written to the log"),
    ("log_disk_full", "Writes that found the disk full"),
    (
        "log_without_descriptor",
        "Times that no file descriptor was left for the next file of the log",
    ),
    ("log_jobs", "Writes to the log"),
    (
        "log_lines_dropped",
        "Lines of this server's log that could not be written to standard error: the reader is too slow or gone, or the disk is full",
    ),
    (
        "log_removals_failed",
        "Old log files that could not be removed",
    ),
    (
        "log_segments_removed",
        "Old log files removed behind a snapshot",
    ),
    (
        "items_evicted",
        "Items evicted to keep the memory limit, since the start or the last snapshot installed",
    ),
    (
        "long_commands_dropped",
        "Commands in pieces not executed because there were too many at a time",
    ),
    (
        "message_dropped_diverged",
        "Entries of a leader that has others in the place of what is committed here, as after a disk was put back to an old copy",
    ),
    (
        "message_dropped_malformed",
        "Peer messages dropped because they make no sense",
    ),
    (
        "message_dropped_not_certified",
        "Keys of fast terms not taken or not sent because the connection is not under TLS, where certificates name both sides",
    ),
    (
        "message_dropped_not_connected",
        "Peer messages dropped because their receiver is not connected",
    ),
    (
        "message_dropped_old_incarnation",
        "Peer messages dropped that come from an earlier life of their sender",
    ),
    (
        "message_dropped_old_term",
        "Peer messages dropped because their term is over",
    ),
    (
        "message_dropped_plane_fence_full",
        "Peer messages dropped because too many waited for the data plane to stop",
    ),
    (
        "message_dropped_other_lineage",
        "Entries and snapshots of another cluster of the same name, which were not taken",
    ),
    (
        "message_dropped_queue_full",
        "Peer messages dropped because too many waited",
    ),
    (
        "message_dropped_stranger",
        "Peer messages dropped because their sender is no member",
    ),
    (
        "message_dropped_unexpected",
        "Peer messages dropped because nothing waits for them",
    ),
    (
        "message_dropped_unknown_group",
        "Peer messages dropped because they belong to no log served here",
    ),
    (
        "outcomes_unknown",
        "Requests whose clients were told that the outcome is unknown",
    ),
    ("peer_bytes_in", "Bytes received from other replicas"),
    ("peer_bytes_out", "Bytes sent to other replicas"),
    (
        "peer_connections_closed_handshake_refused",
        "Peer connections closed because the handshake was refused",
    ),
    (
        "peer_connections_closed_handshake_timeout",
        "Peer connections closed because the handshake took too long",
    ),
    (
        "peer_connections_closed_malformed",
        "Peer connections closed because of bytes that make no sense",
    ),
    (
        "peer_connections_closed_silent",
        "Peer connections closed because nothing was heard",
    ),
    (
        "peer_connections_closed_too_many",
        "Peer connections closed because there are too many",
    ),
    (
        "peer_tls_refused_by_other_side",
        "Peers that refused our certificate or our TLS",
    ),
    (
        "peer_tls_refused_expired",
        "Peers refused because their certificate had expired or was not valid yet",
    ),
    (
        "peer_tls_refused_malformed",
        "Peers refused because they did not speak TLS 1.3",
    ),
    (
        "peer_tls_refused_no_certificate",
        "Peers refused because they showed no certificate",
    ),
    (
        "peer_tls_refused_unknown_authority",
        "Peers refused because no authority of tls-ca had signed their certificate",
    ),
    (
        "peer_tls_refused_wrong_name",
        "Peers refused because their certificate was that of another replica, cluster or purpose",
    ),
    ("peer_messages_in", "Messages received from other replicas"),
    ("peer_messages_out", "Messages sent to other replicas"),
    ("snapshots_failed", "Snapshots that could not be written"),
    ("snapshots_installed", "Snapshots received and installed"),
    (
        "snapshots_outrun",
        "Snapshots that a follower installed when the log behind them was gone already: see log-kept-mib",
    ),
    ("snapshots_sent", "Snapshots sent to followers, complete"),
    ("snapshots_taken", "Snapshots taken"),
    (
        "stepped_down_without_quorum",
        "Times this replica stopped leading because it did not hear a quorum",
    ),
    (
        "vote_refused_recent_leader",
        "Votes refused because a leader was heard recently",
    ),
    (
        "client_port_welcomed",
        "Clients of the port `client` that were let in",
    ),
    (
        "client_port_closed_malformed",
        "Clients of the port `client` closed because what they sent is not its protocol, or too long",
    ),
    (
        "client_port_closed_no_hello",
        "Clients of the port `client` closed because they did not authenticate",
    ),
    (
        "client_port_closed_not_let_in",
        "Clients of the port `client` closed because of a wrong name or password",
    ),
    (
        "client_port_closed_protocol_version",
        "Clients of the port `client` closed because they speak another version of it",
    ),
    (
        "client_port_closed_truncated",
        "Clients of the port `client` that broke off within a message",
    ),
    (
        "client_port_commands",
        "Commands from clients of the port `client`, openings of sessions and those sent again included",
    ),
    (
        "client_port_commands_repeated",
        "Commands of clients of the port `client` that had run before, answered as they were then",
    ),
    ("client_port_pings", "Pings on the port `client`"),
    ("client_port_queries", "Queries on the port `client`"),
    (
        "client_port_refused_answer_gone",
        "Repeated commands of clients of the port `client` that had run before; the answer was too long to be kept",
    ),
    (
        "client_port_refused_busy",
        "Requests of clients of the port `client` refused because too many were under way",
    ),
    (
        "client_port_refused_disk_full",
        "Requests of clients of the port `client` refused because the leader's disk is full",
    ),
    (
        "client_port_refused_no_leader",
        "Requests of clients of the port `client` refused because nobody led",
    ),
    (
        "client_port_refused_not_committed",
        "Commands of clients of the port `client` whose place in the log another leader took",
    ),
    (
        "client_port_refused_not_leader",
        "Requests of clients of the port `client` refused because leadership moved",
    ),
    (
        "client_port_refused_other",
        "Requests of clients of the port `client` refused for another reason",
    ),
    (
        "client_port_refused_outcome_unknown",
        "Commands of clients of the port `client` with an unknown outcome",
    ),
    (
        "client_port_refused_sequence_too_old",
        "Commands of clients of the port `client` numbered too far behind the newest of their session",
    ),
    (
        "client_port_refused_stopping",
        "Requests of clients of the port `client` refused because the replica was stopping",
    ),
    (
        "client_port_refused_too_many_sessions",
        "Sessions of clients of the port `client` that found no room",
    ),
    (
        "client_port_refused_unknown_session",
        "Commands of clients of the port `client` whose session was forgotten",
    ),
    (
        "writes_refused_for_memory",
        "Commands refused at the memory limit, since the start or the last snapshot installed",
    ),
];
