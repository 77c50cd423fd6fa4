"""Random numbers that can be had again: `QUORUMWIRE_HDL_SEED` is printed and taken."""
import os
import random


class Dice:
    def __init__(self):
        self.seed = int(os.environ.get("QUORUMWIRE_HDL_SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"seed {self.seed}: QUORUMWIRE_HDL_SEED={self.seed} runs it again", flush=True)
        self.random = random.Random(self.seed)

    def number(self, bits):
        return self.random.getrandbits(bits)

    def below(self, end):
        return self.random.randrange(end)

    def seldom(self, one_in=16):
        return self.below(one_in) == 0

    def bytes(self, count):
        return self.random.randbytes(count)

    def one_of(self, all_of_them):
        return all_of_them[self.below(len(all_of_them))]

    def near(self, number, bits=64):
        """A number close to another one, or at an end of all numbers."""
        far = [0, 1, (1 << bits) - 1, (1 << bits) - 2, (1 << bits) - 3]
        return self.one_of(far) if self.seldom() else (number + self.one_of([-3, -2, -1, 0, 0, 0, 1, 1, 2, 3])) % (1 << bits)
