"""What is proved of the modules in gates, and with what removed each property fails.

A property is an assertion of its name in a file here. It may lean on others (`given`), which stand above it and are
proved without it. `Every` before a name: what was proved of any one slot is taken for all of them.
"""
from dataclasses import dataclass

from modules import CORE


@dataclass(frozen=True)
class Model:
    """A module, and the file that says what must hold of it."""

    files: tuple
    top: str
    proof: str
    # Small ones, as slang takes them.
    parameters: str = ""
    # Modules within that may say anything.
    boxes: tuple = ()
    # Wires that may be anything but for what is tied: that is proved of another model.
    cut: tuple = ()
    tied: tuple = ()


@dataclass(frozen=True)
class Property:
    model: str
    name: str
    depth: int
    given: tuple = ()
    # (file, old, new): without it a trace from reset breaks the property. None: only others lean on it, or one above
    # is broken by the same.
    removed: tuple = ()
    removed_depth: int = 8
    # The first clock that is looked at.
    removed_from: int = 0
    # Wires of the module that may be anything in this proof: it holds whatever they say.
    free: tuple = ()
    # Takes five seconds at most, of two processors; the rest, up to some minutes.
    is_short: bool = True

    @property
    def full_name(self):
        return f"{self.model}.{self.name}"


MODELS = {
    "fifo": Model(("qw_fifo.sv",), "qw_fifo", "qw_fifo_proof.sv", parameters="-G WIDTH=2 -G DEPTH=4"),
    "frames": Model(("qw_frames.sv",), "qw_frames", "qw_frames_proof.sv", parameters="-G DEPTH=8"),
    "seal": Model(("qw_delay.sv", "qw_delay_clean.sv", "qw_fifo.sv", "qw_digest.sv", "qw_seal.sv"), "qw_seal",
                  "qw_seal_proof.sv", parameters="-G BEATS=32 -G PACKETS_MAX=8 -G JOBS_MAX=4",
                  boxes=("qw_digest", "qw_delay", "qw_delay_clean"),
                  cut=("sum_valid", "tag_valid", "sum", "tag", "ip_j3", "udp_j3", "vlan_j3", "data_e3", "kept_e3", "packet_e1")),
    "again": Model(("qw_fifo.sv", "qw_again.sv"), "qw_again", "qw_again_proof.sv", parameters="-G PLACES=8",
                   cut=("is_there", "slot", "read")),
    "decide": Model(("qw_fifo.sv", "qw_gap.sv", "qw_step.sv", "qw_decide.sv"), "qw_decide", "qw_decide_proof.sv",
                    boxes=("qw_step",)),
    "box_decide": Model(("qw_fifo.sv", "qw_paxos_step.sv", "qw_box_decide.sv"), "qw_box_decide", "qw_box_decide_proof.sv",
                        parameters="-G INSTANCES=2", boxes=("qw_paxos_step", "qw_fifo")),
    "core": Model(tuple(CORE), "qw_core", "qw_core_proof.sv",
                  boxes=("qw_ends", "qw_decide", "qw_carry_out", "qw_again")),
    "carry_out": Model(("qw_fifo.sv", "qw_frames.sv", "qw_record.sv", "qw_carry_out.sv"), "qw_carry_out", "qw_carry_out_proof.sv",
                       parameters="-G RECORD_BEATS=8 -G EMITS_MAX=4", boxes=("qw_frames",)),
    "step_memory": Model(("qw_step.sv",), "qw_step", "qw_step_memory_proof.sv"),
    "step": Model(("qw_step.sv",), "qw_step", "qw_step_proof.sv", cut=("state1",), tied=("Read",)),
    "paxos_step": Model(("qw_paxos_step.sv",), "qw_paxos_step", "qw_paxos_step_proof.sv"),
}

FIFO, FRAMES, STEP, PAXOS = "qw_fifo.sv", "qw_frames.sv", "qw_step.sv", "qw_paxos_step.sv"
# Of a step: who has acknowledged what, counted.
COUNTING = ("best", "any_best", "candidate_held")
SOUND = ("UnderWay", "Sizes", "LastEver", "DurableWithinLog")
COUNTED = ("UnderWay", "Sizes", "LastEver", "EveryMatchWithinLog", "Highest", "Best")
BOX_DECIDE = "qw_box_decide.sv"
SEAL, AGAIN, DECIDE, TURNS = "qw_seal.sv", "qw_again.sv", "qw_decide.sv", "qw_core.sv"
JOBS = ("Out", "Jobs", "JobHead")
PACKETS = (*JOBS, "Packets")
SLOT = ("UnderWay", "PowerOfTwo", "SlotSound")


def gone(file, check, instead="1'b0"):
    """A check that is never met."""
    return ((file, check, instead),)


PROPERTIES = [
    Property("fifo", "Linked", 2),
    Property("fifo", "InOrder", 2, ("Linked",),
             removed=((FIFO, "data_o  <= memory[next_taken[BITS-1:0]];", "data_o  <= memory[taken[BITS-1:0]];"),)),
    Property("fifo", "Arrives", 2, ("Linked",),
             removed=((FIFO, "next_taken != written", "1'b1"),)),
    Property("fifo", "Stays", 2, ("Linked", "InOrder", "Arrives"),
             removed=((FIFO, "(BITS + 1)'(valid_o && ready_i)", "(BITS + 1)'(valid_o)"),)),
    Property("frames", "Linked", 2),
    Property("frames", "Arrives", 2, ("Linked",), removed=((FRAMES, "next_taken != whole", "next_taken != writing"),)),
    Property("frames", "InOrder", 2, ("Linked",), removed=((FRAMES, "lost_o || broken_i", "lost_o"),), removed_depth=10),
    Property("frames", "Loses", 2, ("Linked",), removed=((FRAMES, "lost || !fits", "!fits"),), removed_depth=16),
    Property("frames", "Ends", 2, ("Linked", "InOrder")),
    Property("frames", "Whole", 2, ("Linked", "InOrder", "Ends", "Arrives"),
             removed=((FRAMES, "next_taken != whole", "next_taken != writing"),)),
    Property("frames", "Stays", 2, ("Linked", "InOrder", "Ends", "Arrives"),
             removed=((FRAMES, "(BITS + 1)'(valid_o && ready_i)", "(BITS + 1)'(valid_o)"),)),

    Property("step_memory", "UnderWay", 1, is_short=False),
    Property("step_memory", "Engaged", 2, ("UnderWay",)),
    Property("step_memory", "Zero", 2, ("UnderWay", "Engaged"), is_short=False),
    Property("step_memory", "Stored", 2, ("UnderWay", "Engaged"), free=("after",), is_short=False),
    Property("step_memory", "Read", 2, ("UnderWay", "Engaged", "Zero", "Stored"), free=("after",),
             removed=((STEP, "has_engaged[group_i] ? states[group_i] : '0", "states[group_i]"),), is_short=False),

    Property("step", "UnderWay", 1, is_short=False),
    Property("step", "Sizes", 2, ("UnderWay",)),
    Property("step", "Order", 2, ("UnderWay",), is_short=False),
    Property("step", "LastEver", 2, ("UnderWay", "Sizes"), free=COUNTING, removed=((STEP, "if (c2.last_ever)", "if (1'b0)"),)),
    Property("step", "StartWithinLog", 2, ("UnderWay", "Sizes", "LastEver"), free=COUNTING),
    Property("step", "ReleasedWithinLog", 2, ("UnderWay", "Sizes", "LastEver"), free=COUNTING,
             removed=((STEP, "if (!c2.number_in_last) out = drop(REASON_BEYOND_LAST);", "if (1'b0) out = '0;"),), is_short=False),
    Property("step", "DurableWithinLog", 2, ("UnderWay", "Sizes", "LastEver"), free=COUNTING,
             removed=gone(STEP, "!c2.number_in_last) out = drop(REASON_OF_PERSISTED_WITHIN_LAST)", "0) out = '0"), is_short=False),
    Property("step", "MatchWithinLog", 2, ("UnderWay", "Sizes", "LastEver"), free=COUNTING,
             removed=gone(STEP, "if (!c2.index_in_last) out = to_software(REASON_OF_BEYOND_LAST)", "if (0) out = '0"), is_short=False),
    Property("step", "OwnDurable", 2, SOUND, free=COUNTING,
             removed=((STEP, "if (state.held == 0) begin \\\n          next.persisted_index = next_index;",
                       "if (1) begin \\\n if (state.held == 0) next.persisted_index = next_index;"),), is_short=False),
    Property("step", "Grows", 2, SOUND, free=COUNTING,
             removed=((STEP, "end else if (!c2.index_is_next) begin", "end else if (0) begin"),), is_short=False),
    Property("step", "Matches", 2, SOUND, free=COUNTING, removed=((STEP, "c2.index_is_next && !c2.history_fits", "0"),), is_short=False),
    Property("step", "Assigns", 2, SOUND, free=COUNTING,
             removed=((STEP, "out.header.previous_term = state.last_term;", "out.header.previous_term = state.term;"),), is_short=False),
    Property("step", "Ring", 2, SOUND, free=COUNTING,
             removed=((STEP, "used2 >= 64'(state.ring_slots)", "1'b0"),)),
    Property("step", "Released", 2, SOUND, free=COUNTING,
             removed=((STEP, "else if (!c2.number_in_released) next", "else next"),)),
    Property("step", "Off", 2, SOUND, free=COUNTING,
             removed=((STEP, "if (!c2.leads && !c2.follows) out = to_software(REASON_OF_OFF);", "if (0) out = '0;"),)),
    Property("step", "Term", 2, SOUND, free=COUNTING,
             removed=((STEP, "if (!c2.sequence_in_round) next.round = in2.sequence_;", "next.term = in2.term + 1;"),)),
    Property("step", "Learns", 2, SOUND, free=COUNTING,
             removed=((STEP, "known = c2.committed_in_last ? in2.commit_index : state.last_index;",
                       "known = state.last_index;"),), is_short=False),
    Property("step", "Counts", 2, (*SOUND, "OwnDurable"), free=COUNTING,
             removed=((STEP, "if (!is_question && c2.index_after_start", "if (c2.index_after_start"),), is_short=False),
    Property("step", "Persists", 2, SOUND, free=COUNTING,
             removed=((STEP, "if (state.held == 0) begin\n                next.persisted_index = in2.index;",
                       "if (1) begin\n                next.persisted_index = in2.index;"),)),
    Property("step", "Acknowledges", 2, SOUND, free=COUNTING,
             removed=((STEP, "KIND_HEARTBEAT_OK, state.persisted_index", "KIND_HEARTBEAT_OK, state.last_index"),)),
    Property("step", "Rounds", 2, SOUND, free=COUNTING,
             removed=((STEP, "if (!c2.sequence_in_round) next.round = in2.sequence_;", "next.round = in2.sequence_;"),)),
    Property("step", "Compares", 2, ("UnderWay", "Order"), is_short=False),
    Property("step", "Carries", 2, ("UnderWay", "EveryCompares"), free=("ge",), is_short=False),
    Property("step", "Same", 2, ("UnderWay", "EveryCompares"), free=("ge",), is_short=False),
    Property("step", "Highest", 1, ("UnderWay", "EveryCarries", "EveryCompares"), free=("ge",), is_short=False),
    Property("step", "Best", 1, ("UnderWay", "EverySame"), free=("ge", "is_best"), is_short=False),
    Property("step", "CommitWithinLog", 2, COUNTED, free=("ge",),
             removed=((STEP, "known = c2.committed_in_last ? in2.commit_index : state.last_index;",
                       "known = in2.commit_index;"),), is_short=False),
    Property("step", "CommitMonotone", 2, (*COUNTED, "CommitWithinLog"), free=("ge",),
             removed=((STEP, "c2.committed_in_last ? c2.committed_is_news : c2.last_is_news", "1'b1"),), is_short=False),
    Property("step", "CommitSaid", 2, (*COUNTED, "CommitWithinLog"), free=("ge",), is_short=False),
    Property("step", "AfterStart", 2, ("UnderWay",), free=("ge",), is_short=False),
    Property("step", "OwnTerm", 2, ("UnderWay", "Sizes", "Highest", "Best", "EveryAfterStart"), free=("ge", "is_best"),
             removed=((STEP, "after_start2[j] && after_commit2[j]", "after_commit2[j]"),), is_short=False),
    Property("step", "Moves", 2, ("UnderWay",), free=("ge", "is_best"), is_short=False),
    Property("step", "Counted", 2, ("UnderWay", "Sizes", "Highest"), free=("ge", "is_best"), is_short=False),
    Property("step", "Chosen", 2, ("UnderWay", "Sizes", "Highest", "Best"), free=("ge", "is_best"), is_short=False),
    Property("step", "Held", 2, ("UnderWay", "Sizes", "EveryCompares", "EveryMoves", "Counted", "Chosen"), is_short=False),
    Property("step", "Quorum", 2, ("UnderWay", "Sizes", "Counted", "EveryHeld"), free=("*.holds",),
             removed=((STEP, "holders_of_candidate} >= state.quorum", "holders_of_candidate} >= 1"),), is_short=False),

    Property("paxos_step", "UnderWay", 1, is_short=False),
    Property("paxos_step", "PowerOfTwo", 2, ("UnderWay",)),
    Property("paxos_step", "SlotSound", 2, ("UnderWay", "PowerOfTwo")),
    Property("paxos_step", "PromiseKept", 2, SLOT, is_short=False),
    Property("paxos_step", "VoteKept", 2, SLOT, is_short=False),
    Property("paxos_step", "AbovePromise", 2, (*SLOT, "PromiseKept", "VoteKept"),
             removed=((PAXOS, "else if (below_promised) out = refuse(state, in2, promised, REASON_OF_PAXOS_P2A_OLD);", ""),), is_short=False),
    Property("paxos_step", "OneValue", 2, (*SLOT, "PromiseKept", "VoteKept"),
             removed=((PAXOS, "c2.is_vote_round && !c2.is_value", "1'b0"),), removed_depth=10),
    Property("paxos_step", "AsAsked", 2, SLOT,
             removed=((PAXOS, "else if (!c2.configuration_fits) out = to_software(REASON_OF_PAXOS_CONFIGURATION);", ""),)),
    Property("paxos_step", "Stored", 2, SLOT,
             removed=((PAXOS, "kept.vote_round = in2.term;", ""),)),
    Property("paxos_step", "HolderKept", 2, SLOT),
    Property("paxos_step", "OneHolder", 2, (*SLOT, "HolderKept"),
             removed=((PAXOS, "c2.equals_all && !c2.drawn_all", "1'b0"),), removed_depth=10),

    Property("seal", "Out", 1),
    Property("seal", "OutHead", 1, ("Out",)),
    Property("seal", "Jobs", 1),
    Property("seal", "JobHead", 1, ("Jobs",), is_short=False),
    Property("seal", "Packets", 1, JOBS, is_short=False),
    Property("seal", "Fences", 1, PACKETS),
    Property("seal", "Behind", 1, (*PACKETS, "Fences"), is_short=False),
    Property("seal", "Silent", 1, (*PACKETS, "Fences", "Behind"),
             removed=((SEAL, "fenced && !fence_o && before_fence == 0", "fenced && !fence_o"),), removed_depth=16, removed_from=14),
    Property("seal", "JobStays", 2, JOBS),
    Property("seal", "Begun", 1, (*JOBS, "JobStays")),
    Property("seal", "Gaps", 1, (*JOBS, "Begun")),
    Property("seal", "Fed", 1, (*JOBS, "Begun", "Gaps")),
    Property("seal", "Tail", 1, (*JOBS, "OutHead", "Begun", "Gaps", "Fed")),
    Property("seal", "Whole", 1, (*JOBS, "OutHead", "Begun", "Gaps", "Fed", "Tail"),
             removed=((SEAL, "valid_e0 = job_valid && job.known", "valid_e0 = job_valid && busy && job.known"),),
             removed_depth=20, removed_from=14),

    Property("seal", "Offered", 1, ("Out",)),
    Property("seal", "Makes", 2, (*JOBS, "Offered"),
             removed=((SEAL, "outgoing < 6'(OUT_BEATS - 1)", "outgoing == 0"),), removed_depth=20, removed_from=14),
    Property("seal", "Knows", 6, ("Jobs",),
             removed=((SEAL, "- 4'(job_taken);", "- 4'(job_taken && jobs != 1);"),), removed_depth=24, removed_from=14),
    Property("seal", "Offers", 6, ("Out",),
             removed=((SEAL, "- 6'(tx_valid_o && tx_ready_i);\n    sent_o", "- 6'(tx_valid_o && tx_ready_i && tx_last_o);\n    sent_o"),),
             removed_depth=30, removed_from=14),

    Property("again", "Asked", 1),
    Property("again", "RangeHead", 1, ("Asked",)),
    Property("again", "Counted", 1, ("Asked", "RangeHead"), is_short=False),
    Property("again", "Busy", 1, ("Asked", "RangeHead", "Counted"),
             removed=((AGAIN, "(ask_i && !overflows && ask_range_i.group == GROUP_BITS'(group))", "(1'b0)"),), removed_depth=12),
    Property("again", "Inside", 1, ("Asked",)),
    Property("again", "OffBeginsNothing", 1, ("Asked", "Inside"),
             removed=((AGAIN, "write_place == place) && !is_off);", "write_place == place));"),), removed_depth=12),
    Property("again", "Moves", 6, ("Asked",),
             removed=((AGAIN, "else if (leaves && overflows)", "else if (leaves && asked > 1)"),), removed_depth=14),
    Property("again", "Short", 1, removed=((AGAIN, "range.upto - range.from >= ENTRIES", "1'b0"),)),
    Property("decide", "Apart", 3),
    Property("decide", "OrderGoes", 3,
             removed=((DECIDE, "!under_way && !just_went && (", "!under_way && !just_went && !valid_i && ("),)),
    Property("decide", "UnderWay", 4),
    Property("decide", "OffPushed", 4, ("UnderWay",),
             removed=((DECIDE, "valid3 || orders3 && order_op_i == OP_OFF", "valid3 || orders3 && order_op_i == OP_OFF && waiting == 1"),)),
    Property("decide", "OffNamed", 4, ("UnderWay",),
             removed=((DECIDE, "      decision3.sending.group = order_group_i;\n", ""),)),
    Property("decide", "OffDecidesNothing", 2, ("Apart",),
             removed=((DECIDE, "decision3.stores = (outcome3.actions & ACTION_STORE) != 0;", "decision3.stores = 1'b1;"),)),
    Property("decide", "OffRepeatsNothing", 2, ("Apart",),
             removed=((DECIDE, "!is_softwares && (resends || answers)", "1'b1"),)),
    Property("decide", "Fenced", 2, ("Apart",),
             removed=((DECIDE, "order_op_i == OP_OFF ? fence_i : orders2", "orders2"),)),

    Property("box_decide", "Memory", 1, is_short=False),
    Property("box_decide", "ReadBefore", 1, ("Memory",), is_short=False),
    Property("box_decide", "Changed", 1, ("Memory",), is_short=False),
    Property("box_decide", "Slot", 1, ("Memory", "ReadBefore", "Changed"),
             removed=((BOX_DECIDE, "changed3 && stage3.place == stage1.place ? slot3 :", "1'b0 ? slot3 :"),), removed_from=4),
    Property("box_decide", "Apart", 3),
    Property("box_decide", "OffDecidesNothing", 2, ("Apart",),
             removed=((BOX_DECIDE, "decision3.stores = (outcome3.actions & ACTION_STORE) != 0;", "decision3.stores = 1'b1;"),)),
    Property("box_decide", "Fenced", 2, removed=((BOX_DECIDE, "under_way && fence_i && !rst_i", "orders3"),)),

    Property("carry_out", "Emits", 1, is_short=False),
    Property("carry_out", "EmitHead", 1, ("Emits",), is_short=False),
    Property("carry_out", "Taking", 1, is_short=False),
    Property("carry_out", "Records", 1, ("Taking",), is_short=False),
    Property("carry_out", "RecordHead", 1, ("Records",), is_short=False),
    Property("carry_out", "Lasts", 1, ("Emits", "EmitHead", "Taking", "Records", "RecordHead"), is_short=False),
    Property("carry_out", "Moves", 7, ("Emits", "EmitHead", "Taking", "Records", "RecordHead", "Lasts"),
             removed=(("qw_record.sv", "flush <= last_i && taking && !(makes && ends);", "flush <= 1'b0;"),), removed_depth=16, is_short=False),

    Property("core", "Inside", 1),
    Property("core", "Whole", 2, ("Inside",), removed=((TURNS, "chosen = is_inside ? was :", "chosen ="),)),
    Property("core", "Waits", 2, ("Inside",),
             removed=((TURNS, "!sending_of[0].is_fence || !busy[sending_of[0].group]", "1'b1"),)),
    # Without this a shell that is ready once there is a beat of the log would wait for ever.
    Property("core", "Turns", 2, ("Inside",), removed=((TURNS, "may_go[1] && (!was || !may_go[0])", "may_go[1]"),)),
    Property("core", "Ready", 2, ("Inside", "Whole"),
             removed=((TURNS, "&& (is_inside || may_go[0])", "&& may_go[0]"),)),
]
