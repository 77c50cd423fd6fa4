//! Counters: each is declared once, where it is counted, in one line with its help. Reports, the metrics page
//! and its documentation are made of these declarations.

/// What a counter is called in reports, and what it counts, for people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counter {
    /// Without the prefix and the end that a metrics page adds. A count of microseconds ends in
    /// `_microseconds`.
    pub name: &'static str,
    /// One sentence without its period.
    pub help: &'static str,
}

/// Takes counts, each with its declaration.
pub type CounterSink<'a> = &'a mut dyn FnMut(&'static Counter, u64);

/// A doc comment without the blank it begins with.
#[doc(hidden)]
#[must_use]
pub const fn help_of(comment: &'static str) -> &'static str {
    match comment.as_bytes() {
        [b' ', ..] => comment.split_at(1).1,
        _ => comment,
    }
}

/// Declares a struct of counters. A field's comment is the counter's help; behind `with` stand fields that
/// are none.
///
/// ```
/// quorumwire_interfaces::counters! {
///     /// What a door has done.
///     #[derive(Clone, Copy, Debug, Default)]
///     pub struct DoorCounters {
///         /// Times that the door was opened
///         pub opened: "door_opened",
///     }
/// }
/// let counters = DoorCounters { opened: 3 };
/// counters.each(&mut |counter, count| {
///     assert_eq!((counter.name, counter.help), ("door_opened", "Times that the door was opened"));
///     assert_eq!(count, 3);
/// });
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$about:meta])*
        $vis:vis struct $Counters:ident {
            $($(#[doc = $help:literal])+ $field_vis:vis $field:ident: $name:literal,)*
        }
        $(with { $($(#[$other_about:meta])* $other_vis:vis $other:ident: $Other:ty,)* })?
    ) => {
        $(#[$about])*
        $vis struct $Counters {
            $($(#[doc = $help])+ $field_vis $field: u64,)*
            $($($(#[$other_about])* $other_vis $other: $Other,)*)?
        }

        #[allow(dead_code)] // not everybody adds counters of several together
        impl $Counters {
            /// All of them, in the order of their declaration.
            pub const DECLARED: &'static [$crate::Counter] = &[$($crate::Counter {
                name: $name,
                help: $crate::help_of(concat!($($help),+)),
            }),*];

            /// How much each has counted.
            pub fn each(&self, sink: $crate::CounterSink<'_>) {
                for (counter, count) in Self::DECLARED.iter().zip([$(self.$field),*]) {
                    sink(counter, count);
                }
            }

            /// Adds what another one has counted.
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

/// Declares a struct that counts how often each reason occurred, or each of another enum's variants. A
/// variant's comment is the counter's help; behind `but not` stand variants that are not counted.
///
/// ```
/// enum Why { Rain, Snow, Nothing }
/// quorumwire_interfaces::counters_by! {
///     /// Why people stay at home.
///     #[derive(Clone, Copy, Debug, Default)]
///     pub struct AtHome: Why but not [Nothing] {
///         /// Days on which it rained
///         Rain: "days_of_rain",
///         /// Days on which it snowed
///         Snow: "days_of_snow",
///     }
/// }
/// let mut at_home = AtHome::default();
/// at_home.count(Why::Snow);
/// at_home.count(Why::Nothing);
/// assert_eq!((at_home.of(Why::Rain), at_home.of(Why::Snow), at_home.sum()), (0, 1, 1));
/// ```
#[macro_export]
macro_rules! counters_by {
    (
        $(#[$about:meta])*
        $vis:vis struct $Counters:ident: $Reason:ident $(but not [$($not:ident),*])? {
            $($(#[doc = $help:literal])+ $variant:ident: $name:literal,)*
        }
    ) => {
        $(#[$about])*
        $vis struct $Counters([u64; [$($name),*].len()]);

        #[allow(dead_code)] // not everybody asks for all of it
        impl $Counters {
            /// All of them, in the order of their declaration.
            pub const DECLARED: &'static [$crate::Counter] = &[$($crate::Counter {
                name: $name,
                help: $crate::help_of(concat!($($help),+)),
            }),*];

            const fn position(reason: $Reason) -> Option<usize> {
                enum Position { $($variant),* }
                match reason {
                    $($Reason::$variant => Some(Position::$variant as usize),)*
                    $($($Reason::$not => None,)*)?
                }
            }

            /// Counts one more.
            pub const fn count(&mut self, reason: $Reason) {
                self.count_times(reason, 1);
            }

            /// Counts so many more.
            pub const fn count_times(&mut self, reason: $Reason, times: u64) {
                if let Some(position) = Self::position(reason) {
                    self.0[position] += times;
                }
            }

            /// How often this one occurred.
            #[must_use]
            pub const fn of(&self, reason: $Reason) -> u64 {
                match Self::position(reason) {
                    Some(position) => self.0[position],
                    None => 0,
                }
            }

            /// How often any of them did.
            #[must_use]
            pub fn sum(&self) -> u64 {
                self.0.iter().sum()
            }

            /// How much each has counted.
            pub fn each(&self, sink: $crate::CounterSink<'_>) {
                for (counter, count) in Self::DECLARED.iter().zip(self.0) {
                    sink(counter, count);
                }
            }

            /// Adds what another one has counted.
            pub fn add(&mut self, other: &Self) {
                for (count, more) in self.0.iter_mut().zip(other.0) {
                    *count += more;
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    counters! {
        /// Of a test.
        #[derive(Clone, Copy, Debug, Default)]
        struct Counters {
            /// In one line
            one: "the_one",
            /// In a line that goes on
            /// behind its end
            other: "the_other",
        }
        with {
            /// No counter.
            spoken: bool,
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Why {
        First,
        Second,
        None,
    }

    counters_by! {
        /// Of a test.
        #[derive(Clone, Copy, Debug, Default)]
        struct Reasons: Why but not [None] {
            /// The second variant comes first
            Second: "why_second",
            /// And the first one then
            First: "why_first",
        }
    }

    type Each = Vec<(&'static str, &'static str, u64)>;

    #[test]
    fn each_counter_comes_with_its_name_and_help() {
        let counters = Counters {
            one: 1,
            other: 2,
            spoken: true,
        };
        assert!(counters.spoken);
        let mut both = counters;
        both.add(&counters);
        let mut each = Each::new();
        both.each(&mut |counter, count| each.push((counter.name, counter.help, count)));
        let other = ("the_other", "In a line that goes on behind its end", 4);
        assert_eq!(each, [("the_one", "In one line", 2), other]);
    }

    #[test]
    fn each_reason_is_counted_under_its_own_name() {
        let mut reasons = Reasons::default();
        for why in [Why::First, Why::None, Why::Second, Why::First] {
            reasons.count(why);
        }
        let mut each = Each::new();
        reasons.each(&mut |counter, count| each.push((counter.name, counter.help, count)));
        let second = ("why_second", "The second variant comes first", 1);
        assert_eq!(each, [second, ("why_first", "And the first one then", 2)]);
        assert_eq!((reasons.of(Why::First), reasons.of(Why::None)), (2, 0));
        reasons.add(&reasons.clone());
        assert_eq!(reasons.sum(), 6);
    }
}
