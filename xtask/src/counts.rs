//! Counts of passed and failed checks, and how to read them from the summaries of the test runners.

use std::fmt;
use std::ops::AddAssign;

/// How many checks passed and how many failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Checks that passed.
    pub passed: u64,
    /// Checks that failed, in whatever way.
    pub failed: u64,
}

impl Counts {
    /// One check that passed.
    pub const ONE_PASSED: Self = Self { passed: 1, failed: 0 };
    /// One check that failed.
    pub const ONE_FAILED: Self = Self { passed: 0, failed: 1 };

    /// Reads nextest's line `Summary [ 0.1s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 0 skipped`.
    pub fn of_nextest(text: &str) -> Self {
        let summary = text.lines().rev().find(|line| line.trim_start().starts_with("Summary ["));
        let list = summary.and_then(|line| line.split_once(" run: ")).map_or("", |(_, list)| list);
        Self::of_list(list)
    }

    /// Adds up the lines `test result: ok. 3 passed; 0 failed; …` that the built-in harness prints for each target.
    pub fn of_libtest(text: &str) -> Self {
        let mut counts = Self::default();
        for line in text.lines().filter(|line| line.starts_with("test result: ")) {
            let list = line.split_once(". ").map_or("", |(_, list)| list);
            counts += Self::of_list(list);
        }
        counts
    }

    /// Reads pytest's line `== 1 failed, 3 passed, 1 error in 0.12s ==`, with or without the signs around it.
    pub fn of_pytest(text: &str) -> Self {
        let summary = text.lines().rev().map(|line| line.trim_matches(['=', ' '])).find_map(|line| {
            let (list, duration) = line.rsplit_once(" in ")?;
            duration.starts_with(|c: char| c.is_ascii_digit()).then_some(list)
        });
        Self::of_list(summary.unwrap_or(""))
    }

    /// Adds up the items of a list such as `3 passed, 1 failed`. Skipped, ignored and expected failures count as
    /// neither.
    fn of_list(list: &str) -> Self {
        let mut counts = Self::default();
        for item in list.split([',', ';']) {
            let mut words = item.split_whitespace();
            let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else { continue };
            let what = words.take_while(|word| !word.starts_with('(')).collect::<Vec<_>>().join(" ");
            match what.as_str() {
                "passed" => counts.passed += number,
                "failed" | "exec failed" | "timed out" | "error" | "errors" => counts.failed += number,
                _ => {}
            }
        }
        counts
    }

    /// The same counts with at least one failure, for a program that failed without a failing test: it did not build, or
    /// died before its summary.
    #[must_use]
    pub fn with_a_failure(mut self) -> Self {
        self.failed = self.failed.max(1);
        self
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed }
    }

    #[test]
    fn nextest_failures_of_every_kind_count() {
        let text = "\
        PASS [   0.004s] xtask counts
------------
     Summary [   0.010s] 21 tests run: 21 passed, 3 skipped
";
        assert_eq!(Counts::of_nextest(text), counts(21, 0));
        let text = "  Summary [ 61.0s] 9 tests run: 5 passed (1 slow, 1 leaky), 2 failed, 1 exec failed, 1 timed out\n";
        assert_eq!(Counts::of_nextest(text), counts(5, 4));
        let text = "     Summary [   0.010s] 3/9 tests run: 2 passed, 1 failed, 0 skipped\n        FAIL a b\n";
        assert_eq!(Counts::of_nextest(text), counts(2, 1));
        assert_eq!(Counts::of_nextest("error: could not compile"), counts(0, 0));
    }

    #[test]
    fn libtest_targets_add_up() {
        let text = "\
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        assert_eq!(Counts::of_libtest(text), counts(4, 2));
    }

    #[test]
    fn pytest_errors_count_as_failures() {
        let text = "....\n=== 1 failed, 3 passed, 1 skipped, 2 warnings, 1 error in 12.12s ===\n";
        assert_eq!(Counts::of_pytest(text), counts(3, 2));
        assert_eq!(Counts::of_pytest("x in y\n7 passed in 0.1s\n"), counts(7, 0));
        assert_eq!(Counts::of_pytest("312 passed in 75.10s (0:01:15)\n"), counts(312, 0));
        assert_eq!(Counts::of_pytest("no tests ran in 0.01s\n"), counts(0, 0));
    }

    #[test]
    fn a_failure_without_a_failing_test_counts_once() {
        assert_eq!(counts(3, 0).with_a_failure(), counts(3, 1));
        assert_eq!(counts(3, 2).with_a_failure(), counts(3, 2));
    }

    #[test]
    fn the_last_line_reads_as_promised() {
        assert_eq!(counts(12, 1).to_string(), "12 passed, 1 failed");
    }
}
