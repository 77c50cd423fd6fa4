"""What each module in gates is made of."""
PACKAGES = ["generated/qw_pkg.sv", "generated/qw_host_pkg.sv", "qw_gate_pkg.sv"]
DELAYS = ["qw_delay.sv", "qw_delay_clean.sv"]
ENDS = [*DELAYS, "qw_fifo.sv", "qw_frames.sv", "qw_find.sv", "qw_record.sv", "qw_digest.sv", "qw_crc32c.sv", "qw_siphash.sv",
        "qw_tags.sv", "qw_open.sv", "qw_seal.sv", "qw_ends.sv"]
CORE = [*ENDS, "qw_step.sv", "qw_gap.sv", "qw_decide.sv", "qw_carry_out.sv", "qw_again.sv", "qw_core.sv"]
BOX = [*ENDS, "qw_paxos_step.sv", "qw_box_decide.sv", "qw_carry_out.sv", "qw_box.sv"]
CARD = [*CORE, "qw_paxos_step.sv", "qw_box_decide.sv", "qw_box.sv", "qw_host.sv", "qw_card.sv"]
# Between a card and a shell.
SHELL = ["shells/qw_shell_pkg.sv", *CARD, *(f"shells/qw_{name}.sv" for name in ("axis_in", "merge", "whole", "after_log", "shell"))]
SHELL_AXI = [*SHELL, *(f"shells/qw_{name}.sv" for name in ("crossing", "reset_pair", "log_axi", "shell_axi"))]
# Each module with what it is made of, whose last part is the module; its test has its name.
MODULES = {
    "siphash": [*DELAYS, "qw_siphash.sv"],
    "digest": [*DELAYS, "qw_digest.sv"],
    "crc32c": [*DELAYS, "qw_crc32c.sv"],
    "step": ["qw_step.sv"],
    "paxos_step": ["qw_paxos_step.sv"],
    "core": CORE,
    "box": BOX,
    "card": CARD,
    "box_card": CARD,
    "open": ENDS,
    "seal": ENDS,
    "opennic_250": [*SHELL_AXI, "shells/qw_opennic_250.sv"],
    "opennic_322": [*SHELL_AXI, "shells/qw_opennic_322.sv"],
    "netfpga_plus": [*SHELL_AXI, "shells/qw_netfpga_plus.sv"],
    "corundum": [*SHELL, "shells/qw_log_dma.sv", "shells/qw_corundum.sv"],
}
# What a module is made with.
PARAMETERS = {"box_card": {"IS_BOX": 1}}
