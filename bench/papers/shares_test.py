"""Whose code is whose, and what a sample was spent on."""
import unittest

from papers import shares

PERF = """\
    55d0c0de1000 quorumwire_kv::store::Store::set (/x/quorumwire)
    55d0c0de2000 main (/x/quorumwire)

    ffffffff81000000 tcp_sendmsg ([kernel.kallsyms])
    ffffffff81000001 __x64_sys_sendto ([kernel.kallsyms])

    7f0000000000 __memmove_avx_unaligned_erms (/lib/libc.so.6)

    ffffffffc0000000 bpf_prog_2b71_qw_store (bpf_prog_2b71_qw_store)

"""
PLACES = {0x55D0C0DE1000: shares.APPLICATION}


class SharesTest(unittest.TestCase):
    def test_the_longest_beginning_says_whose_a_file_is(self):
        self.assertEqual(shares.plane_of("control/src/election.rs"), shares.CONTROL)
        self.assertEqual(shares.plane_of("control/src/replication.rs"), shares.DATA)
        self.assertEqual(shares.plane_of("node/src/server/kv/writes.rs"), shares.APPLICATION)
        self.assertEqual(shares.plane_of("node/src/server/links/strangers.rs"), shares.CONTROL)
        for path in ("control/tests/raft/main.rs", "group/src/plane_test.rs", "fastpath/build.rs", "cli/src/main.rs"):
            self.assertIsNone(shares.plane_of(path), path)

    def test_every_part_that_is_named_is_there(self):
        files = shares.tracked("*.rs", "*.c", "*.h")
        for begin in shares.PLANES:
            self.assertTrue(any(path.startswith(begin) for path in files), begin)

    def test_a_line_of_code_is_no_comment_and_not_blank(self):
        self.assertEqual(shares.code_lines("// no\n\n/* no\n no */\nint yes; // yes\n"), 1)

    def test_a_sample_is_spent_on_what_is_innermost(self):
        kinds = [shares.kind_of(stack, PLACES) for stack in shares.parse(PERF)]
        self.assertEqual(kinds, [shares.APPLICATION, "write to sockets", shares.MEMORY, shares.IN_KERNEL])

    def test_what_waits_in_the_kernel_for_no_call_is_named(self):
        stack = shares.parse("    ffffffff81000000 net_rx_action ([kernel.kallsyms])\n")[0]
        self.assertEqual(shares.kind_of(stack, {}), shares.ELSEWHERE)


if __name__ == "__main__":
    unittest.main()
