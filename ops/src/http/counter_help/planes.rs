//! What each counter of a data plane counts, whatever its kind.

/// Name, without prefix and `_total`, and help text.
pub const PLANES: &[(&str, &str)] = &[
    (
        "plane_engaged",
        "Times this replica's data plane was engaged",
    ),
    (
        "plane_engage_refused",
        "Times this replica's data plane was not engaged although it was asked to",
    ),
    (
        "plane_fence_waited",
        "Inputs of consensus that waited for the data plane to stop",
    ),
    (
        "plane_members_lost",
        "Engaged members that fell silent or behind and were taken over by software",
    ),
    (
        "plane_offers",
        "Offers to members close behind to join the running fast term",
    ),
    (
        "plane_before_start",
        "Entries dropped because they are from before the fast term, where software moved them",
    ),
    (
        "plane_behind_ring",
        "Requests for entries that the data plane no longer holds, or for too many at once; software repairs the replica that asked",
    ),
    (
        "plane_beyond_last",
        "Packets about an index that was never assigned",
    ),
    (
        "plane_blind_answers",
        "Answers that the data plane gave to blind writes at their commit",
    ),
    (
        "plane_bundles",
        "Entries that hold several commands, which this leader has given to the data plane",
    ),
    (
        "plane_checksum",
        "Packets dropped because their payload's checksum is wrong",
    ),
    ("plane_commands_bundled", "Commands in these entries"),
    (
        "plane_entries_resent",
        "Entries that the data plane sent again because they were asked for",
    ),
    ("plane_entries_stored", "Entries that the data plane stored"),
    (
        "plane_foreign",
        "Datagrams to the data plane that are none of its protocol, clients' questions for the lineage among them",
    ),
    (
        "plane_foreign_dropped_full",
        "Questions for the lineage dropped because 64 waited for the server already",
    ),
    (
        "plane_foreign_dropped_not_authentic",
        "Questions for the lineage dropped because they are not signed with the clients' key",
    ),
    (
        "plane_foreign_dropped_not_listed",
        "Questions for the lineage dropped because no list of members that is known here names this replica",
    ),
    (
        "plane_foreign_dropped_unknown",
        "Foreign datagrams dropped because they are no questions for the lineage",
    ),
    (
        "plane_gap",
        "Packets behind entries that are missing, which are asked for",
    ),
    (
        "plane_gaps_not_asked",
        "Times that nothing was asked behind a gap because the question was on its way",
    ),
    (
        "plane_group",
        "Packets dropped because they belong to another log",
    ),
    (
        "plane_history",
        "Entries not stored because the one before is not what the leader means",
    ),
    (
        "plane_lineage_told",
        "Times that a client of the data plane was told the cluster's lineage",
    ),
    (
        "plane_malformed",
        "Packets with lengths or fields that the data plane does not take",
    ),
    (
        "plane_memcached_taken",
        "Memcached `set`s by UDP that the data plane put into the log itself",
    ),
    (
        "plane_not_ours",
        "Packets dropped because they are too short to be the data plane's",
    ),
    (
        "plane_not_sent_without_key",
        "Packets not sent because no key to sign them is known",
    ),
    (
        "plane_off",
        "Packets that came while the data plane was not engaged; software serves the requests among them",
    ),
    ("plane_received", "Datagrams that the data plane received"),
    (
        "plane_repeated",
        "Entries that came again and were acknowledged again",
    ),
    (
        "plane_ring_full",
        "Entries and commands not taken because the server had not taken enough out of the data plane yet",
    ),
    (
        "plane_sent",
        "Packets that the data plane handed to the network",
    ),
    (
        "plane_socket_dropped_cut",
        "Datagrams dropped because they are too long or come from no address",
    ),
    (
        "plane_socket_lost_error",
        "Datagrams not sent because the system reported an error",
    ),
    (
        "plane_socket_lost_full",
        "Datagrams not sent because the system had no room for them",
    ),
    (
        "plane_socket_receive_errors",
        "Times that receiving datagrams failed",
    ),
    (
        "plane_socket_received",
        "Datagrams received whole by the data plane's socket",
    ),
    (
        "plane_socket_sent",
        "Datagrams that the data plane sent, its answers to memcached clients among them",
    ),
    (
        "plane_stranger",
        "Packets dropped because their sender has no such part in the fast term",
    ),
    (
        "plane_tag",
        "Packets dropped because their authentication tag is wrong; under TLS also those of a fast term that this replica has no part in",
    ),
    (
        "plane_term_new",
        "Packets dropped because their term is later than the data plane's",
    ),
    (
        "plane_term_old",
        "Packets dropped because their term is earlier than the data plane's",
    ),
    (
        "plane_unexpected",
        "Packets dropped because this replica's role takes none of that kind",
    ),
    (
        "plane_version",
        "Packets dropped because their format's version is unknown",
    ),
    (
        "plane_window_full",
        "Commands not taken because too many entries wait for a commit",
    ),
];
