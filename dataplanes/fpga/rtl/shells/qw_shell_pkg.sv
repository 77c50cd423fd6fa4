// How shells lay out a beat of a stream: the first byte lowest, and a bit for each byte that is there. The core
// has the first byte highest, and counts.
package qw_shell_pkg;
  import qw_gate_pkg::*;

  // Beats of the log that are on their way to the host's memory, and what counts them.
  localparam int LOG_OPEN_MAX = 64;
  localparam int LOG_OPEN_BITS = $clog2(LOG_OPEN_MAX + 1);

  // The bytes of a beat in the other order.
  function automatic logic [BEAT_BITS-1:0] turned(input logic [BEAT_BITS-1:0] data);
    for (int at = 0; at < BEAT_BYTES; at++) turned[8*at+:8] = data[BEAT_BITS-8-8*at+:8];
  endfunction

  // How many bytes are there. The bits stand without gaps from the lowest on, so only where they end is looked
  // for: counting them would be an adder of 64 bits.
  function automatic logic [6:0] kept_of(input logic [BEAT_BYTES-1:0] keep);
    kept_of = '0;
    for (int at = 0; at < BEAT_BYTES; at++)
      if (keep[at] && (at == BEAT_BYTES - 1 || !keep[(at+1)%BEAT_BYTES])) kept_of |= 7'(at + 1);
  endfunction

  function automatic logic [BEAT_BYTES-1:0] keep_of(input logic [6:0] kept);
    for (int at = 0; at < BEAT_BYTES; at++) keep_of[at] = int'(kept) > at;
  endfunction
endpackage
