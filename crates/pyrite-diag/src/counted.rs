//! Numbers of things in sentences.

/// A number with its noun: `1 kernel`, `2 kernels`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_the_singular_and_none_the_plural() {
        let said: Vec<String> = [0, 1, 2].map(|count| counted(count, "query", "queries")).into();
        assert_eq!(said, ["0 queries", "1 query", "2 queries"]);
    }
}
