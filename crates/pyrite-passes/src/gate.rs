//! Numbered permission for rewrites.
//!
//! Every optional rewrite asks the gate before it is made. The gate counts, remembers what was asked if told to, and
//! refuses from a given number on. Running a compiler with limits 0, 1, 2, … finds the first rewrite that breaks a
//! program; refusing that one by its name, which other refusals do not change, finds the next.

/// The first word of every rewrite that passes of this crate ask for, and what it does.
pub const REWRITES: &[(&str, &str)] = &[
    ("decompose", "replaces an operator by simpler ones that the next stage supports"),
    ("stream", "draws random numbers from the fast stream instead of PyTorch's generator"),
    ("common-subexpressions", "eliminates common subexpressions"),
];

/// Lets rewrites through; see the module's text.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    asked: u64,
    limit: Option<u64>,
    refused: Vec<String>,
    log: Option<Vec<String>>,
}

impl Gate {
    /// Lets everything through.
    pub fn open() -> Self {
        Self::default()
    }

    /// Lets the first `limit` rewrites through.
    pub fn up_to(limit: u64) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Refuses rewrites of these names too.
    #[must_use]
    pub fn refusing(self, names: &[String]) -> Self {
        Self { refused: names.to_vec(), ..self }
    }

    /// Remembers what is asked.
    #[must_use]
    pub fn logged(self) -> Self {
        Self { log: Some(Vec::new()), ..self }
    }

    /// Whether the next rewrite may be made; `what` names the pass and the node.
    pub fn allows(&mut self, what: impl FnOnce() -> String) -> bool {
        let number = self.asked;
        self.asked += 1;
        if self.limit.is_some_and(|limit| number >= limit) {
            return false;
        }
        if self.log.is_none() && self.refused.is_empty() {
            return true;
        }
        let what = what();
        let allowed = !self.refused.contains(&what);
        if let (true, Some(log)) = (allowed, &mut self.log) {
            log.push(what);
        }
        // A refused rewrite has no number: those that are made are numbered from 0 without a gap.
        self.asked -= u64::from(!allowed);
        allowed
    }

    /// How many rewrites were asked for.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// The rewrites that were let through, taken out of the gate.
    pub fn into_log(self) -> Vec<String> {
        self.log.unwrap_or_default()
    }

    /// The rewrites that were let through, if they were to be remembered.
    pub fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_counts_and_stops_at_its_limit() {
        let mut gate = Gate::up_to(2).logged();
        let let_through: Vec<bool> = (0..3).map(|n| gate.allows(|| format!("rewrite {n}"))).collect();
        assert_eq!(let_through, [true, true, false]);
        assert_eq!((gate.asked(), gate.log().len()), (3, 2));
    }

    #[test]
    fn a_refused_rewrite_has_no_number() {
        let mut gate = Gate::up_to(2).refusing(&["rewrite 1".to_owned()]).logged();
        let let_through: Vec<bool> = (0..4).map(|n| gate.allows(|| format!("rewrite {n}"))).collect();
        assert_eq!(let_through, [true, false, true, false]);
        assert_eq!(gate.log(), ["rewrite 0", "rewrite 2"]);
    }
}
