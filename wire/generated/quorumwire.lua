-- Generated from wire/format.toml by `make generate`; do not edit.
-- Shows the packets of data planes and Paxos roles, and the frames over TCP, in Wireshark and tshark:
-- wire/README.md says how to load it. It has no keys, so it checks no tag.

local MAGIC, VERSION, HEADER_BYTES = 0x5157, 1, 72

local LIMIT = {
	acceptors_max = 7,
	instance_window_max = 65536,
	life_bytes = 8,
	origin_bytes = 18,
	payload_bytes_max = 1376,
	repair_entries_max = 1024,
	replicas_max = 7,
	resend_entries_max = 32,
	round_owners = 256,
	sender_client = 255,
}
local HEADER = {
	{ name = "magic", offset = 0, bytes = 2, doc = "Always 0x5157; anything else is not ours." },
	{ name = "version", offset = 2, bytes = 1, doc = "Format version; a packet with an unknown one is dropped and counted, never guessed at." },
	{ name = "kind", offset = 3, bytes = 1, doc = "What the packet says, see [kinds]." },
	{ name = "sender", offset = 4, bytes = 1, doc = "Slot of the sending replica in the grant, 0 to 6; 255 from a client. P1A, P2A, ADMIT: whose round it is. P1B, P2B: the acceptor. CHECKPOINT: the learner. Paxos' HEARTBEAT: the coordinator." },
	{ name = "flags", offset = 5, bytes = 1, doc = "See [flags]." },
	{ name = "payload_bytes", offset = 6, bytes = 2, doc = "Bytes behind the header, 0 to payload_bytes_max." },
	{ name = "group", offset = 8, bytes = 4, doc = "Which replicated log." },
	{ name = "payload_crc32c", offset = 12, bytes = 4, doc = "CRC32C of the payload, set by whoever made it and carried untouched; 0 without payload." },
	{ name = "term", offset = 16, bytes = 8, doc = "The fast term; 0 in a REQUEST. Paxos: the round; 0 in a SUBMIT. P1B, P2B that is refused: the round promised to somebody else." },
	{ name = "index", offset = 24, bytes = 8, doc = "APPEND: of this entry. APPEND_OK, HEARTBEAT_OK: highest one promised. RETRANSMIT: first one missing. HEARTBEAT: the leader's last. ANSWER: of the command; 0 if unknown. Paxos: the instance; P1A, P1B: 0 is all of them. CHECKPOINT: everything up to this instance is kept. Paxos' HEARTBEAT: the last instance given to a value." },
	{ name = "previous_term", offset = 32, bytes = 8, doc = "APPEND: term of the entry before. ANSWER that is refused: the number of the reason (README.md). P1B, P2B: the round of the acceptor's vote for this instance; of all: the acceptor is no member up to this instance; refused: the round that is. ADMIT: the acceptor is no member up to this instance. Zero otherwise." },
	{ name = "commit_index", offset = 40, bytes = 8, doc = "Highest index the sender knows to be committed. Paxos: the configuration; 0 in a SUBMIT. P1B that is not refused: the configuration, XOR the number that was drawn for the round asked for." },
	{ name = "session", offset = 48, bytes = 8, doc = "Client session of the command; 0: none, then it may be applied twice if sent twice. Paxos: of the value; 0: a no-op. P1A: a number that its coordinator drew for this round. P1B of all, ADMIT: instances up to this one are forgotten." },
	{ name = "sequence", offset = 56, bytes = 8, doc = "Number of the command in its session. Between replicas, except in APPEND: the heartbeat round. Paxos: of the value in its session. P1B of all: the highest instance voted for. P1B, P2B that is refused: instances up to this one are forgotten." },
	{ name = "tag", offset = 64, bytes = 8, doc = "SipHash-2-4 of the 64 bytes before it and of the payload's digest (README.md); 0 where nothing is authenticated." },
}
local KINDS = {
	{ name = "request", value = 1, doc = "Client to any replica: replicate this command." },
	{ name = "append", value = 2, doc = "Leader to followers: store this entry." },
	{ name = "append_ok", value = 3, doc = "Follower to leader: everything up to here is stored as firmly as the durability asks." },
	{ name = "retransmit", value = 4, doc = "Follower to leader: send again from here on." },
	{ name = "heartbeat", value = 5, doc = "Leader to followers: it lives; its last index and commit index. Paxos: coordinator's host to the others' and to learners." },
	{ name = "heartbeat_ok", value = 6, doc = "Follower to leader: heard the round in `sequence`; also says what append_ok says." },
	{ name = "answer", value = 7, doc = "Replica to client: what became of the command." },
	{ name = "forward", value = 8, doc = "Follower to leader: a client's request; the payload begins with who asked." },
	{ name = "submit", value = 9, doc = "Paxos. Proposer to coordinator: a value to be decided." },
	{ name = "p1a", value = 10, doc = "Paxos. Coordinator to acceptors: promise this round, and say what was voted. Of all instances: the payload is the configuration." },
	{ name = "p1b", value = 11, doc = "Paxos. Acceptor to coordinator: promised; the payload is the value of its vote. Refused: the payload is the acceptor's configuration, if that is another one." },
	{ name = "p2a", value = 12, doc = "Paxos. Coordinator to acceptors: vote for this value." },
	{ name = "p2b", value = 13, doc = "Paxos. Acceptor to learners, and to whoever asked to be told: its vote." },
	{ name = "admit", value = 14, doc = "Paxos. Coordinator's host to that of an acceptor that lost its memory: it is one again." },
	{ name = "checkpoint", value = 15, doc = "Paxos. Learner to the hosts of coordinators and acceptors: how far it has what was decided." },
}
local FLAGS = {
	{ name = "epoch", value = 1, doc = "Lowest bit of the number of the key that made the tag." },
	{ name = "blind", value = 2, doc = "REQUEST, APPEND: answer as soon as it is committed, without what the state machine says." },
	{ name = "tick", value = 4, doc = "The payload moves the log's time." },
	{ name = "fragment", value = 8, doc = "The payload is a piece of a command, or of a value: number and count of pieces (32 bits each), then bytes. A client's piece needs a session. ANSWER: this piece (its number, 32 bits) is in the log, the command is not complete." },
	{ name = "refused", value = 16, doc = "ANSWER: there is none of the state machine; `previous_term` says why, the payload says it for people. P1B, P2B: neither promised nor voted. Paxos' HEARTBEAT: answers one of a coordinator that has the sender's number; the round is the one in that." },
	{ name = "bundle", value = 32, doc = "APPEND: the payload is several commands, each carried out by itself, in this order (README.md). No client may set it." },
	{ name = "tell", value = 64, doc = "P2A: the vote goes to the sender, too, not to learners alone." },
}
-- Why there is no answer (interfaces/src/reason.rs).
local REFUSALS = {
	["1"] = { name = "OutcomeUnknown", executed = "unknown" },
	["2"] = { name = "SequenceTooOld", executed = "unknown" },
	["3"] = { name = "AnswerGone", executed = "yes" },
	["4"] = { name = "AnswerTooLong", executed = "yes" },
	["5"] = { name = "NoWayBack", executed = "yes" },
	["16"] = { name = "NoLeader", executed = "no" },
	["17"] = { name = "NotLeader", executed = "no" },
	["18"] = { name = "Busy", executed = "no" },
	["19"] = { name = "DiskFull", executed = "no" },
	["20"] = { name = "Stopping", executed = "no" },
	["21"] = { name = "NotCommitted", executed = "no" },
	["22"] = { name = "TooManySessions", executed = "no" },
	["23"] = { name = "UnknownSession", executed = "no" },
	["27"] = { name = "Removed", executed = "no" },
	["28"] = { name = "DataGone", executed = "no" },
	["29"] = { name = "Overdue", executed = "no" },
	["30"] = { name = "PiecesGone", executed = "no" },
	["31"] = { name = "Malformed", executed = "no" },
	["32"] = { name = "NotServed", executed = "no" },
	["33"] = { name = "TooManyKeys", executed = "no" },
}
-- What replicas say to each other over TCP (wire/peer.proto).
local PEER_MESSAGES = {
	["8"] = "hello",
	["9"] = "goodbye",
	["10"] = "fresh",
	["11"] = "bootstrap",
	["12"] = "vote_request",
	["13"] = "vote_reply",
	["14"] = "append",
	["15"] = "append_reply",
	["16"] = "snapshot_chunk",
	["17"] = "snapshot_reply",
	["18"] = "transfer_now",
	["19"] = "forward",
	["20"] = "forward_reply",
	["21"] = "engage_offer",
	["22"] = "engaged",
	["23"] = "forward_session",
	["24"] = "fast_term_key",
}

-- What follows is tools/wiregen/src/dissector.lua, as it stands there: what the packets mean.

-- Fields that are read more easily in another base than ten.
local HEXADECIMAL = { magic = true, flags = true, payload_crc32c = true, session = true, tag = true }
-- Bytes before a piece of a command: its number and how many there are. An ANSWER has only the number.
local PIECE_BYTES, PIECE_NUMBER_BYTES = 8, 4
-- Of a command in a bundle: kind of the record that it would be alone, which are these, and its length.
local BUNDLED_BYTES = 3
local BUNDLED_KINDS = { [2] = true, [5] = true }
-- Of a tick: the log's time, and behind it what the leader's wall clock shows where all replicas read that.
local TICK_BYTES, TICK_BYTES_MAX = 8, 16
-- What a client asks first, and what it is told (wire/README.md, "Packets").
local LINEAGE_MAGIC, LINEAGE_VERSION, LINEAGE_BYTES = "QLIN", 1, 56
-- Frames over TCP (wire/README.md, "Framing").
local FRAME_BYTES = 16
local ATTACHMENT_BYTES_MAX = 2097152
local FRAMINGS = {
	QWP1 = { between = "replicas", meta_bytes_max = 16384 },
	QWC1 = { between = "client and replica", meta_bytes_max = 4096 },
}

local KIND, FLAG = {}, {}
local kind_names, kind_docs = {}, {}
for _, kind in ipairs(KINDS) do
	KIND[kind.name] = kind.value
	kind_names[kind.value] = kind.name
	kind_docs[kind.value] = kind.doc
end
for _, flag in ipairs(FLAGS) do
	FLAG[flag.name] = flag.value
end

-- As qw_payload_fits() in fastpath/include/qw_verify.h.
local WITHOUT_PAYLOAD = {
	[KIND.append_ok] = true,
	[KIND.retransmit] = true,
	[KIND.heartbeat] = true,
	[KIND.heartbeat_ok] = true,
	[KIND.checkpoint] = true,
}
-- Whose payload is a configuration, if there is one: a life for each acceptor.
local CONFIGURATION_BYTES_MAX = LIMIT.acceptors_max * LIMIT.life_bytes
local WITH_CONFIGURATION = { [KIND.p1a] = true, [KIND.admit] = true }
-- Whose payload may be a piece of a command, or of a value.
local WITH_PIECES = {
	[KIND.request] = true,
	[KIND.append] = true,
	[KIND.answer] = true,
	[KIND.forward] = true,
	[KIND.submit] = true,
	[KIND.p1b] = true,
	[KIND.p2a] = true,
	[KIND.p2b] = true,
}
-- Whose `sequence` is the heartbeat round.
local WITH_HEARTBEAT_ROUND = {
	[KIND.append_ok] = true,
	[KIND.retransmit] = true,
	[KIND.heartbeat] = true,
	[KIND.heartbeat_ok] = true,
}
-- Flags whose names stand in the column Info; the others show there in other ways, or say little.
local IN_INFO = { blind = true, tick = true, bundle = true }
-- Whose `index`, `term` and `commit_index` are instance, round and configuration.
local OF_A_ROUND = { [KIND.p1a] = true, [KIND.p1b] = true, [KIND.p2a] = true, [KIND.p2b] = true, [KIND.admit] = true }

local packets = Proto.new("quorumwire", "Quorumwire Packet")
local frames = Proto.new("quorumwire_frame", "Quorumwire Frame")

-- Fields, by what stands behind the protocol's name in a filter.
local F, G = {}, {}
for _, field in ipairs(HEADER) do
	local name = "quorumwire." .. field.name
	local make = ProtoField["uint" .. 8 * field.bytes]
	local as = HEXADECIMAL[field.name] and base.HEX or base.DEC
	F[field.name] = make(name, field.name, as, field.name == "kind" and kind_names or nil, nil, field.doc)
end
for _, flag in ipairs(FLAGS) do
	local name = "flags." .. flag.name
	F[name] = ProtoField.bool("quorumwire." .. name, flag.name, 8, nil, flag.value, flag.doc)
end

local function number(name, bits, doc, as)
	F[name] = ProtoField["uint" .. bits]("quorumwire." .. name, name, as or base.DEC, nil, nil, doc)
end

local function text(name, doc)
	F[name] = ProtoField.string("quorumwire." .. name, name, base.UNICODE, doc)
end

local function octets(name, doc)
	F[name] = ProtoField.bytes("quorumwire." .. name, name, base.NONE, doc)
end

number("heartbeat_round", 64, "Which heartbeat is meant.")
number("instance", 64, "Paxos: the instance; 0: all of them.")
number("configuration", 64, "Paxos: which life of each acceptor counts.")
number("round", 64, "Paxos: the round, a count times " .. LIMIT.round_owners .. " and whose it is.")
number("vote_round", 64, "Paxos: the round of the acceptor's vote for this instance.")
number("refused_round", 64, "Paxos: the round that is refused.")
number("round.count", 64, "How many rounds before it this owner could have had.")
number("round.owner", 8, "Whose round it is.")
number("drawn", 64, "Paxos: the number that the coordinator drew for this round.", base.HEX)
number("bound", 64, "Paxos: the acceptor is no member up to this instance.")
number("forgotten", 64, "Paxos: instances up to this one are forgotten.")
number("highest", 64, "Paxos: the highest instance voted for.")
number("kept", 64, "Paxos: the learner's application has kept everything up to this instance.")
number("learned", 64, "Paxos: the learner has had everything up to this instance.")
number("life", 64, "Paxos: the life of an acceptor that counts, in the order of their numbers.", base.HEX)
text("refusal", "Why there is no answer, by the name that wire/README.md lists.")
text("refusal.executed", "Whether it was carried out.")
text("refusal.words", "The same for people.")
F["payload_crc32c.right"] = ProtoField.bool(
	"quorumwire.payload_crc32c.right",
	"right",
	base.NONE,
	nil,
	nil,
	"Whether the checksum is that of the payload, as far as it covers it."
)
octets("payload", "What stands behind the header.")
F["origin.address"] = ProtoField.ipv6("quorumwire.origin.address", "origin.address", "FORWARD: who asked.")
number("origin.port", 16, "FORWARD: who asked.")
number("piece.number", 32, "Which piece of a command or value it is, counted from 0.")
number("piece.count", 32, "How many pieces there are.")
number("log_time_ms", 64, "Tick: the log's time, milliseconds since 1970.")
number("wall_clock_ms", 64, "Tick: what the leader's wall clock shows, milliseconds since 1970.")
number("bundled.kind", 8, "Bundle: kind of the record that the command would be alone.")
number("bundled.bytes", 16, "Bundle: length of that record's payload.")
octets("bundled", "Bundle: the command.")
octets("data", "The command, the value, or what the state machine said.")
octets("trailing", "Bytes behind the packet, which no tag covers.")
number("lineage.version", 8, "Format version of the datagram that asks for the lineage.")
F["lineage.kind"] = ProtoField.uint8(
	"quorumwire.lineage.kind",
	"lineage.kind",
	base.DEC,
	{ [1] = "question", [2] = "answer" },
	nil,
	"Whether a client asks, or a replica tells."
)
number("lineage.epoch", 8, "Lowest bit of the number of the key that made the tag.")
octets("lineage.question", "Drawn by the client, and repeated in the answer.")
octets("lineage.lineage", "The lineage; zero in a question, and where the cluster has none.")
octets("lineage.tag", "Made with the key in the client's file.")

local function of_frames(name, kind, ...)
	G[name] = ProtoField[kind]("quorumwire_frame." .. name, name, ...)
end

of_frames("magic", "string", base.ASCII, "QWP1 between replicas, QWC1 between client and replica.")
of_frames("meta_bytes", "uint32", base.DEC, nil, nil, "Bytes of the message.")
of_frames("attachment_bytes", "uint32", base.DEC, nil, nil, "Bytes behind the message.")
of_frames("crc32c", "uint32", base.HEX, nil, nil, "CRC32C of the first 12 bytes, the message and the attachment.")
of_frames("crc32c.right", "bool", base.NONE, nil, nil, "Whether the checksum is right.")
of_frames("meta", "bytes", base.NONE, "The message: protobuf, as wire/peer.proto and wire/client.proto say.")
of_frames("message", "string", base.ASCII, "What a replica says to another.")
of_frames("group", "uint32", base.DEC, nil, nil, "Between replicas: which replicated log.")
of_frames("term", "uint64", base.DEC, nil, nil, "Between replicas: the speaker's term.")
of_frames("request", "uint64", base.DEC, nil, nil, "With a client: which request; 0: none.")
of_frames("attachment", "bytes", base.NONE, "Raw bytes; the schema says for each message what they are.")
of_frames("undecoded", "bytes", base.NONE, "Bytes from which on nothing can be trusted.")

local E, X = {}, {}
local function problem(of, protocol, name, words, about, severity)
	of[name] = ProtoExpert.new(protocol .. "." .. name, words, about, severity or expert.severity.ERROR)
end

problem(E, "quorumwire", "cut", "The packet is cut", expert.group.PROTOCOL)
problem(E, "quorumwire", "too_long", "Bytes stand behind the packet", expert.group.PROTOCOL)
problem(E, "quorumwire", "other_version", "A version unknown here", expert.group.UNDECODED, expert.severity.WARN)
problem(E, "quorumwire", "unknown_kind", "A kind unknown here", expert.group.UNDECODED, expert.severity.WARN)
problem(E, "quorumwire", "unknown_flags", "Flags unknown here", expert.group.UNDECODED, expert.severity.WARN)
problem(E, "quorumwire", "wrong_size", "No payload of this kind has this size", expert.group.PROTOCOL)
problem(E, "quorumwire", "wrong_checksum", "The payload's checksum is wrong", expert.group.CHECKSUM)
problem(E, "quorumwire", "cut_piece", "The payload is too short for a piece", expert.group.PROTOCOL)
problem(E, "quorumwire", "wrong_bundle", "The payload is no bundle", expert.group.PROTOCOL)
problem(E, "quorumwire", "wrong_configuration", "The payload is no configuration", expert.group.PROTOCOL)
problem(E, "quorumwire", "wrong_tick", "The payload is no time", expert.group.PROTOCOL)
problem(X, "quorumwire_frame", "no_frame", "What stands here is no frame", expert.group.PROTOCOL)
problem(X, "quorumwire_frame", "wrong_checksum", "The checksum is wrong", expert.group.CHECKSUM)

local function listed(by_name)
	local list = {}
	for _, it in pairs(by_name) do
		list[#list + 1] = it
	end
	return list
end

packets.fields = listed(F)
packets.experts = listed(E)
frames.fields = listed(G)
frames.experts = listed(X)

-- The operators of Lua 5.3 are no words in 5.2, which Debian's Wireshark has. Of both libraries one is there; the
-- second may say negative numbers.
local bits = bit32 or bit
local WORD = 0x100000000

local function either(a, b)
	return bits.bxor(a, b) % WORD
end

local crc_of_byte = {}
for byte = 0, 255 do
	local rest = byte
	for _ = 1, 8 do
		local low = rest % 2
		rest = (rest - low) / 2
		if low == 1 then
			rest = either(rest, 0x82f63b78)
		end
	end
	crc_of_byte[byte] = rest
end

local function crc32c(bytes)
	local sum = WORD - 1
	for at = 1, #bytes do
		local low = sum % 256
		sum = either(crc_of_byte[either(low, bytes:byte(at))], (sum - low) / 256)
	end
	return either(sum, WORD - 1)
end

local ZERO = UInt64(0)

-- One packet that is shown: `says` are the header's numbers, `problems` goes into the column Info.
local function tell(packet, item, name, words)
	item:add_proto_expert_info(E[name], words)
	packet.problems = packet.problems .. " [" .. words .. "]"
end

local function has(packet, flag)
	return bits.band(packet.says.flags, FLAG[flag]) ~= 0
end

-- What a field of the header means in this kind: below it, so that a filter finds it by its own name.
local function meaning(packet, name, of)
	return packet.items[of]:add(F[name], packet.ranges[of]):set_generated()
end

local function round(packet, name, of)
	local range = packet.ranges[of]
	local item = meaning(packet, name, of)
	item:add(F["round.count"], range, range:uint64():rshift(8)):set_generated()
	item:add(F["round.owner"], range(7, 1)):set_generated()
	item:append_text(" (" .. tostring(range:uint64():rshift(8)) .. " of " .. range(7, 1):uint() .. ")")
end

local function meanings_of_paxos(packet)
	local says = packet.says
	if says.kind ~= KIND.admit then
		meaning(packet, "instance", "index")
	end
	meaning(packet, "configuration", "commit_index")
	round(packet, "round", "term")
	if says.kind == KIND.p1a then
		meaning(packet, "drawn", "session")
	elseif says.kind == KIND.admit then
		meaning(packet, "bound", "previous_term")
		meaning(packet, "forgotten", "session")
	elseif has(packet, "refused") then
		round(packet, "refused_round", "previous_term")
		meaning(packet, "forgotten", "sequence")
	elseif says.kind == KIND.p1b and says.index == ZERO then
		meaning(packet, "bound", "previous_term")
		meaning(packet, "forgotten", "session")
		meaning(packet, "highest", "sequence")
	elseif says.kind == KIND.p1b and says.previous_term ~= ZERO then
		round(packet, "vote_round", "previous_term")
	elseif says.kind == KIND.p2b then
		round(packet, "vote_round", "previous_term")
	end
end

-- A number that is not known is read as the first one (wire/README.md).
local function reason(packet)
	return REFUSALS[tostring(packet.says.previous_term)] or REFUSALS["1"]
end

local function meanings(packet)
	local kind = packet.says.kind
	if OF_A_ROUND[kind] then
		meanings_of_paxos(packet)
	elseif kind == KIND.checkpoint then
		meaning(packet, "kept", "index")
		meaning(packet, "learned", "sequence")
		meaning(packet, "configuration", "commit_index")
	elseif WITH_HEARTBEAT_ROUND[kind] then
		meaning(packet, "heartbeat_round", "sequence")
	elseif kind == KIND.answer and has(packet, "refused") then
		local item, range = packet.items.previous_term, packet.ranges.previous_term
		item:add(F.refusal, range, reason(packet).name):set_generated()
		item:add(F["refusal.executed"], range, reason(packet).executed):set_generated()
	end
end

local function rounds(number)
	return tostring(number:rshift(8)) .. "." .. tostring(number:band(255))
end

local function session(says)
	return " session=0x" .. says.session:tohex(16) .. " sequence=" .. tostring(says.sequence)
end

local function of_instance(says, round)
	local which = says.index == ZERO and " all instances" or " instance=" .. tostring(says.index)
	return which .. " round=" .. rounds(round or says.term)
end

-- What an acceptor says: of a refusal `term` is the round that it has promised.
local function of_acceptor(packet, vote)
	local says = packet.says
	local sender = " acceptor=" .. says.sender
	if has(packet, "refused") then
		return of_instance(says, says.previous_term) .. sender .. " refused: promised=" .. rounds(says.term)
			.. " forgotten=" .. tostring(says.sequence)
	end
	return of_instance(says) .. sender .. vote
end

-- What matters of each kind.
local INFO = {
	[KIND.request] = function(_, says)
		return session(says)
	end,
	[KIND.append] = function(_, says)
		return " index=" .. tostring(says.index) .. " term=" .. tostring(says.term) .. " commit="
			.. tostring(says.commit_index) .. " sender=" .. says.sender
	end,
	[KIND.append_ok] = function(_, says)
		return " index=" .. tostring(says.index) .. " term=" .. tostring(says.term) .. " sender=" .. says.sender
	end,
	[KIND.answer] = function(packet, says)
		local refused = has(packet, "refused") and " refused: " .. reason(packet).name or ""
		return refused .. " index=" .. tostring(says.index) .. session(says) .. " sender=" .. says.sender
	end,
	[KIND.forward] = function(_, says)
		return session(says) .. " term=" .. tostring(says.term) .. " sender=" .. says.sender
	end,
	[KIND.heartbeat] = function(_, says)
		return " round=" .. tostring(says.sequence) .. " index=" .. tostring(says.index) .. " term="
			.. tostring(says.term) .. " commit=" .. tostring(says.commit_index) .. " sender=" .. says.sender
	end,
	[KIND.heartbeat_ok] = function(_, says)
		return " round=" .. tostring(says.sequence) .. " index=" .. tostring(says.index) .. " term="
			.. tostring(says.term) .. " sender=" .. says.sender
	end,
	[KIND.p1a] = function(_, says)
		return of_instance(says) .. " coordinator=" .. says.sender
	end,
	[KIND.p1b] = function(packet, says)
		local vote = says.index == ZERO and " highest=" .. tostring(says.sequence)
			or says.previous_term == ZERO and " no vote"
			or " vote=" .. rounds(says.previous_term) .. session(says)
		return of_acceptor(packet, vote)
	end,
	[KIND.p2a] = function(_, says)
		local value = says.session == ZERO and " no-op" or session(says)
		return of_instance(says) .. " coordinator=" .. says.sender .. value
	end,
	[KIND.p2b] = function(packet, says)
		return of_acceptor(packet, session(says))
	end,
	[KIND.admit] = function(_, says)
		return " round=" .. rounds(says.term) .. " coordinator=" .. says.sender .. " bound="
			.. tostring(says.previous_term) .. " forgotten=" .. tostring(says.session)
	end,
	[KIND.checkpoint] = function(_, says)
		return " learner=" .. says.sender .. " kept=" .. tostring(says.index) .. " learned=" .. tostring(says.sequence)
	end,
}
INFO[KIND.retransmit] = INFO[KIND.append_ok]
INFO[KIND.submit] = INFO[KIND.request]

local function header(packet, tvb, tree)
	for _, field in ipairs(HEADER) do
		if field.offset + field.bytes > tvb:len() then
			return false
		end
		local range = tvb(field.offset, field.bytes)
		packet.ranges[field.name] = range
		packet.items[field.name] = tree:add(F[field.name], range)
		packet.says[field.name] = field.bytes == 8 and range:uint64() or range:uint()
		if field.name == "version" and packet.says.version ~= VERSION then
			return false
		end
	end
	return true
end

local function flags(packet)
	local item, range = packet.items.flags, packet.ranges.flags
	local rest = packet.says.flags
	for _, flag in ipairs(FLAGS) do
		item:add(F["flags." .. flag.name], range)
		if has(packet, flag.name) then
			item:append_text(" " .. flag.name)
			packet.flags = packet.flags .. (IN_INFO[flag.name] and " " .. flag.name or "")
			rest = rest - flag.value
		end
	end
	if rest ~= 0 then
		tell(packet, item, "unknown_flags", "unknown flags")
	end
end

-- As qw_check_form() in fastpath/include/qw_verify.h.
local function form(packet, sent_bytes)
	local kind, payload_bytes = packet.says.kind, packet.says.payload_bytes
	local item = packet.items.payload_bytes
	if not kind_names[kind] then
		tell(packet, packet.items.kind, "unknown_kind", "unknown kind")
	elseif
		payload_bytes > LIMIT.payload_bytes_max
		or WITHOUT_PAYLOAD[kind] and payload_bytes > 0
		or WITH_CONFIGURATION[kind] and payload_bytes > CONFIGURATION_BYTES_MAX
		or kind == KIND.forward and payload_bytes < LIMIT.origin_bytes
	then
		tell(packet, item, "wrong_size", "no payload of this kind has this size")
	end
	if HEADER_BYTES + payload_bytes > sent_bytes then
		tell(packet, item, "cut", "cut")
	elseif HEADER_BYTES + payload_bytes < sent_bytes then
		tell(packet, item, "too_long", "bytes behind it")
	end
end

-- Of a FORWARD it does not cover who asked.
local function checksum(packet, payload)
	local kind = packet.says.kind
	local before = kind == KIND.forward and LIMIT.origin_bytes or 0
	local bytes = payload and payload:raw() or ""
	if not kind_names[kind] or #bytes < packet.says.payload_bytes or #bytes < before then
		return
	end
	local right = crc32c(bytes:sub(before + 1)) == packet.says.payload_crc32c
	local item, range = packet.items.payload_crc32c, packet.ranges.payload_crc32c
	item:add(F["payload_crc32c.right"], range, right):set_generated()
	if not right then
		tell(packet, item, "wrong_checksum", "wrong checksum")
	end
end

-- Wireshark has no range without bytes: none stands for it.
local function length_of(range)
	return range and range:len() or 0
end

local function bundle(packet, range, tree)
	local at, bytes = 0, length_of(range)
	while at + BUNDLED_BYTES <= bytes do
		local length = range(at + 1, 2):uint()
		if not BUNDLED_KINDS[range(at, 1):uint()] or at + BUNDLED_BYTES + length > bytes then
			break
		end
		tree:add(F["bundled.kind"], range(at, 1))
		tree:add(F["bundled.bytes"], range(at + 1, 2))
		if length > 0 then
			tree:add(F.bundled, range(at + BUNDLED_BYTES, length))
		end
		at = at + BUNDLED_BYTES + length
	end
	if at < bytes or bytes == 0 then
		tell(packet, tree, "wrong_bundle", "no bundle")
	end
end

local function configuration(packet, range, tree)
	local bytes = length_of(range)
	if bytes % LIMIT.life_bytes ~= 0 or bytes > CONFIGURATION_BYTES_MAX then
		return tell(packet, tree, "wrong_configuration", "no configuration")
	end
	for at = 0, bytes - LIMIT.life_bytes, LIMIT.life_bytes do
		tree:add(F.life, range(at, LIMIT.life_bytes))
	end
end

local function tick(packet, range, tree)
	local bytes = length_of(range)
	if bytes < TICK_BYTES then
		return tell(packet, tree, "wrong_tick", "no time")
	end
	tree:add(F.log_time_ms, range(0, 8))
	if bytes >= TICK_BYTES_MAX then
		tree:add(F.wall_clock_ms, range(8, 8))
	end
end

local function origin(packet, range, tree)
	tree:add(F["origin.address"], range(0, 16))
	tree:add(F["origin.port"], range(16, 2))
	local address = tostring(range(0, 16):ipv6())
	if range(0, 12):raw() == ("\0"):rep(10) .. "\255\255" then
		address = tostring(range(12, 4):ipv4())
	end
	packet.flags = packet.flags .. " from " .. address .. " port " .. range(16, 2):uint()
end

-- Shows a piece's number and count, and returns how many bytes these are; none if they are not there.
local function piece(packet, range, at, tree)
	local left = length_of(range) - at
	local bytes = packet.says.kind == KIND.answer and PIECE_NUMBER_BYTES or PIECE_BYTES
	if left < bytes then
		tell(packet, tree, "cut_piece", "too short for a piece")
		return 0
	end
	tree:add(F["piece.number"], range(at, 4))
	packet.flags = packet.flags .. " piece=" .. range(at, 4):uint()
	if bytes == PIECE_BYTES then
		tree:add(F["piece.count"], range(at + 4, 4))
		packet.flags = packet.flags .. "/" .. range(at + 4, 4):uint()
	end
	return bytes
end

-- What is in a payload of which all bytes are there.
local function contents(packet, range, tree)
	local kind, at = packet.says.kind, 0
	if WITH_CONFIGURATION[kind] or (kind == KIND.p1b or kind == KIND.p2b) and has(packet, "refused") then
		return configuration(packet, range, tree)
	end
	if kind == KIND.forward and length_of(range) >= LIMIT.origin_bytes then
		origin(packet, range, tree)
		at = LIMIT.origin_bytes
	end
	if has(packet, "fragment") and WITH_PIECES[kind] then
		at = at + piece(packet, range, at, tree)
	end
	local rest = at < length_of(range) and range(at) or nil
	if kind == KIND.append and has(packet, "bundle") then
		bundle(packet, rest, tree)
	elseif kind == KIND.append and has(packet, "tick") then
		tick(packet, rest, tree)
	elseif rest and kind == KIND.answer and has(packet, "refused") then
		tree:add_packet_field(F["refusal.words"], rest, ENC_UTF_8 + ENC_NA)
	elseif rest then
		tree:add(F.data, rest)
	end
end

local function payload(packet, tvb, tree)
	local wanted = packet.says.payload_bytes
	local bytes = math.min(wanted, tvb:len() - HEADER_BYTES)
	local range = bytes > 0 and tvb(HEADER_BYTES, bytes) or nil
	checksum(packet, range)
	local below = range and tree:add(F.payload, range) or packet.items.payload_bytes
	if bytes >= wanted and kind_names[packet.says.kind] then
		contents(packet, range, below)
	end
	if tvb:len() > HEADER_BYTES + wanted then
		tree:add(F.trailing, tvb(HEADER_BYTES + wanted))
	end
end

-- The packet was whole, and is not in the recording.
local CAPTURED = " (captured in part)"

local function show_packet(tvb, pinfo, root)
	local tree = root:add(packets, tvb())
	local packet = { says = {}, items = {}, ranges = {}, problems = "", flags = "" }
	pinfo.cols.protocol = "QW"
	local info = "packet"
	if header(packet, tvb, tree) then
		local kind = packet.says.kind
		info = kind_names[kind] or "kind " .. kind
		packet.items.kind:append_text(kind_docs[kind] and ": " .. kind_docs[kind] or "")
		flags(packet)
		form(packet, tvb:reported_len())
		if kind_names[kind] then
			meanings(packet)
			info = info .. (INFO[kind] and INFO[kind](packet, packet.says) or "")
		end
		payload(packet, tvb, tree)
		if tvb:len() < tvb:reported_len() then
			info = info .. CAPTURED
		end
	elseif packet.says.version and packet.says.version ~= VERSION then
		tell(packet, packet.items.version, "other_version", "version " .. packet.says.version .. ", not known here")
	elseif tvb:reported_len() < HEADER_BYTES then
		tell(packet, tree, "cut", "cut")
	else
		info = info .. CAPTURED
	end
	info = info .. packet.flags .. packet.problems
	tree:append_text(", " .. info)
	pinfo.cols.info:set(info)
	return tvb:len()
end

local function is_lineage(tvb)
	return tvb:len() >= 5 and tvb:raw(0, 4) == LINEAGE_MAGIC
end

local function show_lineage(tvb, pinfo, root)
	local tree = root:add(packets, tvb())
	local packet = { problems = "" }
	pinfo.cols.protocol = "QW"
	local version = tvb(4, 1):uint()
	local item = tree:add(F["lineage.version"], tvb(4, 1))
	local info = "lineage"
	if version ~= LINEAGE_VERSION then
		tell(packet, item, "other_version", "version " .. version .. ", not known here")
	elseif tvb:reported_len() < LINEAGE_BYTES then
		tell(packet, tree, "cut", "cut")
	elseif tvb:len() >= LINEAGE_BYTES then
		local kinds = { "question", "answer" }
		local kind = tvb(5, 1):uint()
		info = info .. " " .. (kinds[kind] or "kind " .. kind)
		item = tree:add(F["lineage.kind"], tvb(5, 1))
		if not kinds[kind] then
			tell(packet, item, "unknown_kind", "unknown kind")
		end
		tree:add(F["lineage.epoch"], tvb(6, 1))
		tree:add(F["lineage.question"], tvb(8, 16))
		tree:add(F["lineage.lineage"], tvb(24, 16))
		tree:add(F["lineage.tag"], tvb(40, 16))
		if tvb:reported_len() > LINEAGE_BYTES then
			tell(packet, tree, "too_long", "bytes behind it")
		end
	end
	pinfo.cols.info:set(info .. packet.problems)
	return tvb:len()
end

function packets.dissector(tvb, pinfo, root)
	if is_lineage(tvb) then
		return show_lineage(tvb, pinfo, root)
	end
	if tvb:len() < 2 or tvb(0, 2):uint() ~= MAGIC then
		return 0
	end
	return show_packet(tvb, pinfo, root)
end

packets:register_heuristic("udp", function(tvb, pinfo, root)
	local is_packet = tvb:len() >= 3 and tvb(0, 2):uint() == MAGIC and tvb(2, 1):uint() == VERSION
	if not is_packet and not (is_lineage(tvb) and tvb(4, 1):uint() == LINEAGE_VERSION) then
		return false
	end
	pinfo.conversation = packets
	packets.dissector(tvb, pinfo, root)
	return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(packets)

-- A number of protobuf at `at`, and where the next byte stands; nothing if it is not whole.
local function varint(range, at)
	local value, factor = ZERO, UInt64(1)
	for place = at, math.min(at + 9, range:len() - 1) do
		local byte = range(place, 1):uint()
		value = value + factor * UInt64(byte % 128)
		if byte < 128 then
			return value, place + 1
		end
		factor = factor:lshift(7)
	end
	return nil, nil
end

-- Gives `see` each field of a message: its number, and where its value stands. Ends where the bytes make no sense.
local function each_field(range, see)
	local at = 0
	while at < range:len() do
		local key, behind = varint(range, at)
		if not key then
			return
		end
		local wire_type, before = key:band(7):tonumber(), behind
		local length
		if wire_type == 0 then
			_, behind = varint(range, behind)
		elseif wire_type == 1 then
			behind = behind + 8
		elseif wire_type == 2 then
			length, behind = varint(range, behind)
			if length and length <= UInt64(range:len()) then
				behind = behind + length:tonumber()
			else
				behind = nil
			end
		elseif wire_type == 5 then
			behind = behind + 4
		else
			return
		end
		if not behind or behind > range:len() then
			return
		end
		see(tostring(key:rshift(3)), wire_type, range(before, behind - before))
		at = behind
	end
end

-- The first fields of a message, which all messages of its side have; what of it goes into the column Info.
local function message(magic, range, tree)
	local info, body = "", ""
	each_field(range, function(field, wire_type, value)
		local named = magic == "QWP1" and PEER_MESSAGES[field]
		if named and wire_type == 2 then
			body = named
			tree:add(G.message, value, named)
		elseif wire_type == 0 and (field == "1" or field == "2" and magic == "QWP1") then
			local name = magic == "QWC1" and "request" or field == "1" and "group" or "term"
			local said = varint(value, 0)
			info = info .. " " .. name .. "=" .. tostring(said)
			tree:add(G[name], value, name == "group" and said:lower() or said)
		end
	end)
	return (magic == "QWC1" and "client frame" or body ~= "" and body or "alive") .. info
end

-- How many bytes a frame has that begins at `at`, of which the first 16 are there; nothing if it is none.
local function frame_bytes(tvb, at)
	local framing = FRAMINGS[tvb:raw(at, 4)]
	local meta_bytes, attachment_bytes = tvb(at + 4, 4):uint(), tvb(at + 8, 4):uint()
	if not framing or meta_bytes > framing.meta_bytes_max or attachment_bytes > ATTACHMENT_BYTES_MAX then
		return nil
	end
	return FRAME_BYTES + meta_bytes + attachment_bytes
end

local function show_frame(tvb, at, bytes, root)
	local range = tvb(at, bytes)
	local magic = tvb:raw(at, 4)
	local meta_bytes, attachment_bytes = range(4, 4):uint(), range(8, 4):uint()
	local tree = root:add(frames, range)
	tree:add(G.magic, range(0, 4)):append_text(" (between " .. FRAMINGS[magic].between .. ")")
	tree:add(G.meta_bytes, range(4, 4))
	tree:add(G.attachment_bytes, range(8, 4))
	local checksum_item = tree:add(G.crc32c, range(12, 4))
	local meta = meta_bytes > 0 and range(FRAME_BYTES, meta_bytes) or nil
	local info = magic == "QWC1" and "client frame" or "alive"
	if meta then
		info = message(magic, meta, tree:add(G.meta, meta))
	end
	if attachment_bytes > 0 then
		tree:add(G.attachment, range(FRAME_BYTES + meta_bytes, attachment_bytes))
		info = info .. " attachment=" .. attachment_bytes
	end
	local covered = range(0, 12):raw() .. (bytes > FRAME_BYTES and range(FRAME_BYTES):raw() or "")
	local right = crc32c(covered) == range(12, 4):uint()
	checksum_item:add(G["crc32c.right"], range(12, 4), right):set_generated()
	if not right then
		checksum_item:add_proto_expert_info(X.wrong_checksum, "wrong checksum")
		info = info .. " [wrong checksum]"
	end
	tree:append_text(", " .. info)
	return info
end

-- What stands in the column Info of the frames before in the same segment: Wireshark asks for the first ones alone
-- if these began in an earlier segment, and puts what is said next right behind.
local said = ""

local function tell_frames(pinfo, infos)
	local words = table.concat(infos, "; ")
	if said ~= "" and tostring(pinfo.cols.info):find(said, 1, true) then
		pinfo.cols.info:set("; " .. words)
	else
		pinfo.cols.info:set(words)
	end
	said = words
end

-- As many whole frames as are here; Wireshark puts the rest before what comes next.
function frames.dissector(tvb, pinfo, root)
	local at, infos, total = 0, {}, tvb:len()
	local cut = tvb:len() < tvb:reported_len()
	while at < total do
		local missing
		if total - at < FRAME_BYTES then
			missing = DESEGMENT_ONE_MORE_SEGMENT
		else
			local bytes = frame_bytes(tvb, at)
			if not bytes then
				local rest = tvb(at)
				root:add(frames, rest):add(G.undecoded, rest):add_proto_expert_info(X.no_frame, "no frame")
				infos[#infos + 1] = "no frame"
				break
			end
			missing = at + bytes > total and at + bytes - total or nil
			if not missing then
				infos[#infos + 1] = show_frame(tvb, at, bytes, root)
				at = at + bytes
			end
		end
		if missing then
			if cut then
				infos[#infos + 1] = "part of a frame"
			else
				pinfo.desegment_offset = at
				pinfo.desegment_len = missing
			end
			break
		end
	end
	pinfo.cols.protocol = "QW frame"
	if #infos > 0 then
		tell_frames(pinfo, infos)
	end
	return total
end

frames:register_heuristic("tcp", function(tvb, pinfo, root)
	if tvb:len() < FRAME_BYTES or not frame_bytes(tvb, 0) then
		return false
	end
	pinfo.conversation = frames
	frames.dissector(tvb, pinfo, root)
	return true
end)
DissectorTable.get("tcp.port"):add_for_decode_as(frames)
