//! Whole numbers of any size, as far as numbers with a fraction need them. Knows no signs.

/// A number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Natural {
    /// Pieces of 32 bits, the least first; the last is not 0.
    pieces: Vec<u32>,
}

/// As many decimal digits as fit a piece.
const DIGITS_PER_PIECE: usize = 9;

/// Ten to that.
const PIECE_OF_DIGITS: u32 = 1_000_000_000;

/// Bits of a quotient, at least: two more than a mantissa has.
const QUOTIENT_BITS: u32 = 66;

/// The lowest piece of a number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the rest is left out on purpose"
)]
const fn low(number: u128) -> u32 {
    number as u32
}

impl From<u128> for Natural {
    fn from(mut number: u128) -> Self {
        let mut pieces = Vec::new();
        while number != 0 {
            pieces.push(low(number));
            number >>= u32::BITS;
        }
        Self { pieces }
    }
}

impl Natural {
    pub(super) fn from_digits(digits: &[u8], base: u32) -> Self {
        let mut number = Self { pieces: Vec::new() };
        for &digit in digits {
            number.multiply_and_add(base, u32::from(digit));
        }
        number
    }

    fn multiply_and_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for piece in &mut self.pieces {
            carry += u64::from(*piece) * u64::from(factor);
            *piece = low(u128::from(carry));
            carry >>= u32::BITS;
        }
        if carry != 0 {
            self.pieces.push(low(u128::from(carry)));
        }
    }

    pub(super) fn multiply_by_power_of_ten(&mut self, power: usize) {
        for _ in 0..power / DIGITS_PER_PIECE {
            self.multiply_and_add(PIECE_OF_DIGITS, 0);
        }
        for _ in 0..power % DIGITS_PER_PIECE {
            self.multiply_and_add(10, 0);
        }
    }

    pub(super) fn shift_left(&mut self, shift: usize) {
        if self.pieces.is_empty() {
            return;
        }
        self.multiply_and_add(1 << (shift % 32), 0);
        let whole = std::iter::repeat_n(0, shift / 32);
        self.pieces.splice(0..0, whole);
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for piece in self.pieces.iter_mut().rev() {
            let next = *piece << 31;
            *piece = *piece >> 1 | carry;
            carry = next;
        }
        self.drop_zeros();
    }

    fn drop_zeros(&mut self) {
        while self.pieces.last() == Some(&0) {
            self.pieces.pop();
        }
    }

    fn bits(&self) -> u32 {
        match self.pieces.last() {
            None => 0,
            Some(last) => {
                let below = u32::try_from(self.pieces.len() - 1).unwrap_or(u32::MAX / 32);
                below * 32 + (32 - last.leading_zeros())
            }
        }
    }

    fn is_at_least(&self, other: &Self) -> bool {
        let lengths = self.pieces.len().cmp(&other.pieces.len());
        lengths
            .then_with(|| self.pieces.iter().rev().cmp(other.pieces.iter().rev()))
            .is_ge()
    }

    /// Takes away what is not more.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (place, piece) in self.pieces.iter_mut().enumerate() {
            let taken = other.pieces.get(place).copied().unwrap_or(0);
            let (less, first) = piece.overflowing_sub(taken);
            let (less, second) = less.overflowing_sub(u32::from(borrow));
            *piece = less;
            borrow = first || second;
        }
        self.drop_zeros();
    }

    /// Its first bits, the power of two they count, and whether there is more below them.
    pub(super) fn top(&self) -> (u128, i32, bool) {
        let (below, top) = self.pieces.split_at(self.pieces.len().saturating_sub(4));
        let number = top
            .iter()
            .rev()
            .fold(0, |number, &piece| number << 32 | u128::from(piece));
        let exponent = i32::try_from(below.len() * 32).unwrap_or(i32::MAX);
        (number, exponent, below.iter().any(|&piece| piece != 0))
    }

    /// The first bits of the quotient, the power of two they count, and whether there is more.
    pub(super) fn divide(mut self, mut divisor: Self) -> (u128, i32, bool) {
        let shift =
            QUOTIENT_BITS.cast_signed() - self.bits().cast_signed() + divisor.bits().cast_signed();
        let distance = shift.unsigned_abs() as usize;
        if shift >= 0 {
            self.shift_left(distance);
        } else {
            divisor.shift_left(distance);
        }
        divisor.shift_left(QUOTIENT_BITS as usize);
        let mut quotient = 0;
        for _ in 0..=QUOTIENT_BITS {
            quotient <<= 1;
            if self.is_at_least(&divisor) {
                self.subtract(&divisor);
                quotient |= 1;
            }
            divisor.halve();
        }
        (quotient, -shift, !self.pieces.is_empty())
    }

    /// Its decimal digits.
    pub(super) fn decimal(mut self) -> String {
        let mut groups = Vec::new();
        while !self.pieces.is_empty() {
            let mut rest = 0;
            for piece in self.pieces.iter_mut().rev() {
                let number = rest << 32 | u64::from(*piece);
                *piece = low(u128::from(number / u64::from(PIECE_OF_DIGITS)));
                rest = number % u64::from(PIECE_OF_DIGITS);
            }
            self.drop_zeros();
            groups.push(rest);
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            let digits = format!("{group:09}");
            text.push_str(&digits);
        }
        text
    }
}
