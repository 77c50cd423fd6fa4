// The core as Verilator makes it, its clock, and what is around it on a card: frames that wait for
// it and that it has sent, and the host's memory. C functions for ffi.rs; a card is used by one
// thread at a time.
#include "Vqw_card.h"
#include "verilated.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

namespace {

constexpr std::size_t BEAT_BYTES = 64;
// Frames that wait for the core: more than it could have under way. One more is dropped.
constexpr std::size_t COMING_MAX = 512;
// Clocks between two frames: a card's network has gaps, too. More come than leave all the same
// where a frame has several copies; what finds no room in the core is lost, and counted.
constexpr unsigned REST_CLOCKS = 8;
// No answer over AXI4-Lite takes so long.
constexpr unsigned ANSWER_CLOCKS_MAX = 16;
// So many clocks without a sign of work, behind the last, and nothing more happens by itself: what
// one module hands to the next is under way in neither for a clock or two.
constexpr unsigned REST_MIN = 8;

using Frame = std::vector<std::uint8_t>;

// A beat's first byte is its highest.
void get(const VlWide<16> &beat, std::uint8_t *bytes, std::size_t count) {
    for (std::size_t at = 0; at < count; at++) {
        const std::size_t place = BEAT_BYTES - 1 - at;
        bytes[at] = static_cast<std::uint8_t>(beat[place / 4] >> 8 * (place % 4));
    }
}

void put(VlWide<16> &beat, const std::uint8_t *bytes, std::size_t count) {
    for (std::size_t word = 0; word < 16; word++) beat[word] = 0;
    for (std::size_t at = 0; at < count; at++) {
        const std::size_t place = BEAT_BYTES - 1 - at;
        beat[place / 4] |= static_cast<std::uint32_t>(bytes[at]) << 8 * (place % 4);
    }
}

struct Queue {
    std::deque<Frame> frames;
    Frame begun;

    void take(const VlWide<16> &beat, std::size_t kept, bool is_last) {
        const std::size_t before = begun.size();
        begun.resize(before + kept);
        get(beat, begun.data() + before, kept);
        if (!is_last) return;
        frames.push_back(std::move(begun));
        begun.clear();
    }
};

}  // namespace

struct qw_card_model {
    VerilatedContext context;
    Vqw_card core{&context};
    std::uint8_t *memory;
    std::size_t memory_bytes;
    std::deque<Frame> coming;
    std::size_t at = 0;  // of the first of them, what the core has
    unsigned rests = 0;
    Queue sent, for_host;
    std::uint64_t dropped = 0, outside = 0, dice = 1;
    std::uint32_t slowness = 1;

    qw_card_model(std::uint8_t *memory_, std::size_t bytes) : memory(memory_), memory_bytes(bytes) {
        core.rst_i = 1;
        core.rx_valid_i = 0;
        core.rx_error_i = 0;
        // No wrapper drops frames here, and a beat outside of the memory ends the card.
        core.log_failed_i = core.own_lost_i = core.long_i = 0;
        core.s_axil_awvalid = core.s_axil_wvalid = core.s_axil_arvalid = 0;
        core.s_axil_wstrb = 0xf;
        core.s_axil_bready = core.s_axil_rready = 1;
        for (int clock = 0; clock < 8; clock++) this->clock();
        core.rst_i = 0;
    }

    void come() {
        core.rx_valid_i = rests == 0 && !coming.empty();
        if (rests > 0) rests--;
        if (!core.rx_valid_i) return;
        const Frame &frame = coming.front();
        const std::size_t kept = std::min(BEAT_BYTES, frame.size() - at);
        put(core.rx_data_i, frame.data() + at, kept);
        core.rx_kept_i = static_cast<std::uint8_t>(kept);
        at += kept;
        core.rx_last_i = at == frame.size();
        if (!core.rx_last_i) return;
        coming.pop_front();
        at = 0;
        rests = REST_CLOCKS;
    }

    void write_log() {
        const std::uint64_t address = core.log_address_o;
        if (address > memory_bytes || memory_bytes - address < BEAT_BYTES) {
            outside++;
            return;
        }
        get(core.log_data_o, memory + address, BEAT_BYTES);
    }

    // Whether something that the core gives is taken in this clock.
    bool takes() {
        dice = dice * 6364136223846793005U + 1442695040888963407U;
        return slowness <= 1 || (dice >> 33) % slowness == 0;
    }

    // One clock.
    void clock() {
        core.clk = 0;
        come();
        core.tx_ready_i = takes();
        core.host_ready_i = takes();
        core.log_ready_i = takes();
        core.eval();
        if (!core.rst_i) {
            if (core.tx_valid_o && core.tx_ready_i) sent.take(core.tx_data_o, core.tx_kept_o, core.tx_last_o);
            if (core.host_valid_o && core.host_ready_i)
                for_host.take(core.host_data_o, core.host_kept_o, core.host_last_o);
            if (core.log_valid_o && core.log_ready_i) write_log();
        }
        core.clk = 1;
        core.eval();
    }

    bool is_at_rest() { return coming.empty() && !core.busy_o; }
};

extern "C" {

// Its memory stays the caller's, which touches it only between calls.
qw_card_model *qw_card_new(std::uint8_t *memory, std::size_t bytes) noexcept { return new qw_card_model(memory, bytes); }

void qw_card_free(qw_card_model *card) noexcept { delete card; }

// A frame comes from the network. It is dropped if too many wait.
void qw_card_receive(qw_card_model *card, const std::uint8_t *frame, std::size_t bytes) noexcept {
    if (bytes == 0 || card->coming.size() >= COMING_MAX) {
        card->dropped++;
        return;
    }
    card->coming.emplace_back(frame, frame + bytes);
}

// What the core gives is taken in one clock of so many.
void qw_card_slow(qw_card_model *card, std::uint32_t clocks) noexcept { card->slowness = clocks; }

// Until nothing more happens by itself, at most so many clocks; how many there were.
std::size_t qw_card_run(qw_card_model *card, std::size_t clocks_max) noexcept {
    std::size_t clocks = 0;
    unsigned rest = 0;
    while (clocks < clocks_max && rest < REST_MIN) {
        rest = card->is_at_rest() ? rest + 1 : 0;
        card->clock();
        clocks++;
    }
    return clocks;
}

// Whether it was written.
int qw_card_write(qw_card_model *card, std::uint32_t at, std::uint32_t value) noexcept {
    Vqw_card &core = card->core;
    core.s_axil_awaddr = at;
    core.s_axil_wdata = value;
    core.s_axil_awvalid = core.s_axil_wvalid = 1;
    for (unsigned clock = 0; clock < ANSWER_CLOCKS_MAX; clock++) {
        core.clk = 0;
        core.eval();
        const bool is_taken = core.s_axil_awready && core.s_axil_awvalid;
        const bool is_answered = core.s_axil_bvalid;
        const bool is_written = core.s_axil_bresp == 0;
        card->clock();
        if (is_taken) core.s_axil_awvalid = core.s_axil_wvalid = 0;
        if (is_answered) return is_written;
    }
    return 0;
}

// Whether it was read.
int qw_card_read(qw_card_model *card, std::uint32_t at, std::uint32_t *value) noexcept {
    Vqw_card &core = card->core;
    core.s_axil_araddr = at;
    core.s_axil_arvalid = 1;
    for (unsigned clock = 0; clock < ANSWER_CLOCKS_MAX; clock++) {
        core.clk = 0;
        core.eval();
        const bool is_taken = core.s_axil_arready && core.s_axil_arvalid;
        const bool is_answered = core.s_axil_rvalid;
        const bool is_read = core.s_axil_rresp == 0;
        *value = core.s_axil_rdata;
        card->clock();
        if (is_taken) core.s_axil_arvalid = 0;
        if (is_answered) return is_read;
    }
    return 0;
}

// The next frame that it has sent, or, if so asked, that is for the host; its bytes, or 0 if there
// is none. One that is longer than there is room is cut.
std::size_t qw_card_take(qw_card_model *card, int for_host, std::uint8_t *frame, std::size_t room) noexcept {
    std::deque<Frame> &frames = (for_host ? card->for_host : card->sent).frames;
    if (frames.empty()) return 0;
    const std::size_t bytes = std::min(room, frames.front().size());
    std::memcpy(frame, frames.front().data(), bytes);
    frames.pop_front();
    return bytes;
}

// Frames dropped because too many waited, and beats that were not for the host's memory.
void qw_card_counts(const qw_card_model *card, std::uint64_t *dropped, std::uint64_t *outside) noexcept {
    *dropped = card->dropped;
    *outside = card->outside;
}
}
