//! Numbered permission for rewrites.
//!
//! Every optional rewrite asks the gate before it is made. The gate counts, remembers what was asked if told to, and
//! refuses from a given number on. Running a compiler with limits 0, 1, 2, … finds the first rewrite that breaks a
//! program.

/// Lets rewrites through; see the module's text.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    asked: u64,
    limit: Option<u64>,
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

    /// Remembers what is asked.
    #[must_use]
    pub fn logged(self) -> Self {
        Self { log: Some(Vec::new()), ..self }
    }

    /// Whether the next rewrite may be made; `what` names the pass and the node.
    pub fn allows(&mut self, what: impl FnOnce() -> String) -> bool {
        let number = self.asked;
        self.asked += 1;
        let allowed = self.limit.is_none_or(|limit| number < limit);
        if let (true, Some(log)) = (allowed, &mut self.log) {
            log.push(what());
        }
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
}
