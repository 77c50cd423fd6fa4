// The log as writes over AXI4, a beat each, in order: all have the same number. If one fails, none follows before the
// next reset: an entry with a hole must not be found.
module qw_log_axi
  import qw_gate_pkg::*, qw_shell_pkg::*;
(
    input  logic                  clk,
    input  logic                  rst_i,
    input  logic                  valid_i,
    output logic                  ready_o,
    input  logic [          63:0] address_i,
    input  logic [ BEAT_BITS-1:0] data_i,
    output logic [LOG_OPEN_BITS-1:0] open_o,
    output logic                  landed_o,
    output logic                  failed_o,
    output logic [           3:0] m_axi_awid,
    output logic [          63:0] m_axi_awaddr,
    output logic [           7:0] m_axi_awlen,
    output logic [           2:0] m_axi_awsize,
    output logic [           1:0] m_axi_awburst,
    output logic [           3:0] m_axi_awcache,
    output logic [           2:0] m_axi_awprot,
    output logic                  m_axi_awvalid,
    input  logic                  m_axi_awready,
    output logic [ BEAT_BITS-1:0] m_axi_wdata,
    output logic [BEAT_BYTES-1:0] m_axi_wstrb,
    output logic                  m_axi_wlast,
    output logic                  m_axi_wvalid,
    input  logic                  m_axi_wready,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [           3:0] m_axi_bid,    // it is the same for all
    input  logic [           1:0] m_axi_bresp,  // its higher bit: it failed
    // verilator lint_on UNUSEDSIGNAL
    input  logic                  m_axi_bvalid,
    output logic                  m_axi_bready
);
  logic takes;
  initial {m_axi_awvalid, m_axi_wvalid, open_o} = '0;
  always_comb begin
    ready_o = (!m_axi_awvalid || m_axi_awready) && (!m_axi_wvalid || m_axi_wready) && !failed_o &&
        !rst_i && open_o != LOG_OPEN_BITS'(LOG_OPEN_MAX);
    takes = valid_i && ready_o;
    landed_o = m_axi_bvalid;
    m_axi_awid = '0;
    m_axi_awlen = '0;
    m_axi_awsize = 3'd6;      // 64 bytes
    m_axi_awburst = 2'b01;
    m_axi_awcache = 4'b0011;  // it may be held, not gathered
    m_axi_awprot = '0;
    m_axi_wstrb = '1;
    m_axi_wlast = 1'b1;
    m_axi_bready = 1'b1;
  end
  always_ff @(posedge clk) begin
    if (m_axi_awready) m_axi_awvalid <= 1'b0;
    if (m_axi_wready) m_axi_wvalid <= 1'b0;
    if (takes) begin
      {m_axi_awvalid, m_axi_wvalid} <= '1;
      m_axi_awaddr <= address_i;
      m_axi_wdata <= turned(data_i);
    end
    open_o <= open_o + LOG_OPEN_BITS'(takes) - LOG_OPEN_BITS'(landed_o);
    if (m_axi_bvalid && m_axi_bresp[1]) failed_o <= 1'b1;
    if (rst_i) failed_o <= 1'b0;
  end
endmodule
