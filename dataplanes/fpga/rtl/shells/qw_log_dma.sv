// The log as descriptors for Corundum's DMA: a beat stands in a row of a memory on the chip until it was read from
// there and written to the host. If one fails, none is begun before the next reset.
module qw_log_dma
  import qw_gate_pkg::*, qw_shell_pkg::*;
#(
    parameter int DMA_ADDR_WIDTH = 64,
    parameter int DMA_LEN_WIDTH = 16,
    parameter int DMA_TAG_WIDTH = 16,
    parameter int RAM_SEL_WIDTH = 4,
    parameter int RAM_ADDR_WIDTH = 16,
    parameter int RAM_SEG_COUNT = 2,
    parameter int RAM_SEG_DATA_WIDTH = 512,
    parameter int RAM_SEG_ADDR_WIDTH = RAM_ADDR_WIDTH - $clog2(RAM_SEG_COUNT * RAM_SEG_DATA_WIDTH / 8)
) (
    input  logic                          clk,
    input  logic                          rst_i,
    input  logic                          valid_i,
    output logic                          ready_o,
    input  logic [                  63:0] address_i,
    input  logic [         BEAT_BITS-1:0] data_i,
    output logic [     LOG_OPEN_BITS-1:0] open_o,
    output logic                          landed_o,
    output logic                          failed_o,
    output logic [    DMA_ADDR_WIDTH-1:0] desc_dma_addr_o,
    output logic [     RAM_SEL_WIDTH-1:0] desc_ram_sel_o,
    output logic [    RAM_ADDR_WIDTH-1:0] desc_ram_addr_o,
    output logic [     DMA_LEN_WIDTH-1:0] desc_len_o,
    output logic [     DMA_TAG_WIDTH-1:0] desc_tag_o,
    output logic                          desc_valid_o,
    input  logic                          desc_ready_i,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [     DMA_TAG_WIDTH-1:0] status_tag_i,   // as many as there are rows
    // verilator lint_on UNUSEDSIGNAL
    input  logic [                   3:0] status_error_i,
    input  logic                          status_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [RAM_SEG_COUNT*RAM_SEG_ADDR_WIDTH-1:0] rd_cmd_addr_i,  // rows, of which there are fewer
    // verilator lint_on UNUSEDSIGNAL
    input  logic [     RAM_SEG_COUNT-1:0] rd_cmd_valid_i,
    output logic [     RAM_SEG_COUNT-1:0] rd_cmd_ready_o,
    output logic [RAM_SEG_COUNT*RAM_SEG_DATA_WIDTH-1:0] rd_resp_data_o,
    output logic [     RAM_SEG_COUNT-1:0] rd_resp_valid_o,
    input  logic [     RAM_SEG_COUNT-1:0] rd_resp_ready_i
);
  localparam int ROWS = LOG_OPEN_MAX;
  localparam int ROW_BITS = $clog2(ROWS);
  localparam int ROW_BYTES = RAM_SEG_COUNT * RAM_SEG_DATA_WIDTH / 8;
  logic [ROW_BITS-1:0] next, first, done;
  logic [ROWS-1:0] open;
  logic takes;
  logic [BEAT_BITS-1:0] data;
  always_comb begin
    ready_o = (!desc_valid_o || desc_ready_i) && !failed_o && open_o != LOG_OPEN_BITS'(LOG_OPEN_MAX);
    takes = valid_i && ready_o;
    data = turned(data_i);
    done = status_tag_i[ROW_BITS-1:0];
    // Whatever order they are said in, they count in the order in which they were given.
    landed_o = open_o != 0 && !open[first];
    desc_ram_sel_o = '0;
    desc_len_o = DMA_LEN_WIDTH'(BEAT_BYTES);
  end
  always_ff @(posedge clk) begin
    if (desc_ready_i) desc_valid_o <= 1'b0;
    if (status_valid_i) open[done] <= 1'b0;
    if (status_valid_i && status_error_i != 0) failed_o <= 1'b1;
    if (takes) begin
      desc_valid_o <= 1'b1;
      desc_dma_addr_o <= DMA_ADDR_WIDTH'(address_i);
      desc_ram_addr_o <= RAM_ADDR_WIDTH'(int'(next) * ROW_BYTES);
      desc_tag_o <= DMA_TAG_WIDTH'(next);
      open[next] <= 1'b1;
      next <= next + 1'b1;
    end
    if (landed_o) first <= first + 1'b1;
    open_o <= open_o + LOG_OPEN_BITS'(takes) - LOG_OPEN_BITS'(landed_o);
    if (rst_i) {desc_valid_o, open, open_o, next, first, failed_o} <= '0;
  end
  // A beat fills the first segments of its row.
  for (genvar segment = 0; segment < RAM_SEG_COUNT; segment++) begin : g_segment
    always_comb rd_cmd_ready_o[segment] = !rd_resp_valid_o[segment] || rd_resp_ready_i[segment];
    always_ff @(posedge clk) begin
      if (rd_cmd_ready_o[segment]) rd_resp_valid_o[segment] <= rd_cmd_valid_i[segment];
      if (rst_i) rd_resp_valid_o[segment] <= 1'b0;
    end
    if (segment * RAM_SEG_DATA_WIDTH < BEAT_BITS) begin : g_memory
      localparam int BITS = RAM_SEG_DATA_WIDTH < BEAT_BITS ? RAM_SEG_DATA_WIDTH : BEAT_BITS;
      logic [BITS-1:0] memory[ROWS];
      logic [BITS-1:0] read;
      always_ff @(posedge clk) begin
        if (takes) memory[next] <= data[segment*RAM_SEG_DATA_WIDTH+:BITS];
        if (rd_cmd_ready_o[segment]) read <= memory[rd_cmd_addr_i[segment*RAM_SEG_ADDR_WIDTH+:ROW_BITS]];
      end
      always_comb rd_resp_data_o[segment*RAM_SEG_DATA_WIDTH+:RAM_SEG_DATA_WIDTH] = RAM_SEG_DATA_WIDTH'(read);
    end else begin : g_nothing
      always_comb rd_resp_data_o[segment*RAM_SEG_DATA_WIDTH+:RAM_SEG_DATA_WIDTH] = '0;
    end
  end
endmodule
